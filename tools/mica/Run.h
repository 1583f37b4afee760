//===- Run.h - mica run -----------------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_RUN_H
#define MICA_TOOLS_MICA_RUN_H

#include "tools/mica/Arguments.h"

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runRun(const RunArguments &arguments, const char *argv0);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_RUN_H
