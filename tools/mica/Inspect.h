//===- Inspect.h - mica inspect ---------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_INSPECT_H
#define MICA_TOOLS_MICA_INSPECT_H

#include "tools/mica/Arguments.h"

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runInspect(InspectArguments arguments);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_INSPECT_H
