//===- Caches.h - mica list and mica rm -------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_CACHES_H
#define MICA_TOOLS_MICA_CACHES_H

#include "tools/mica/Arguments.h"

namespace mica::tool {

/// Each prints its errors and returns the exit status.
int runList(const ListArguments &arguments);
int runRemove(const RemoveArguments &arguments);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_CACHES_H
