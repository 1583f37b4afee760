//===- Diff.h - mica diff ---------------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_DIFF_H
#define MICA_TOOLS_MICA_DIFF_H

#include "tools/mica/Arguments.h"

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runDiff(DiffArguments arguments);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_DIFF_H
