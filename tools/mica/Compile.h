//===- Compile.h - mica compile ---------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_COMPILE_H
#define MICA_TOOLS_MICA_COMPILE_H

#include "tools/mica/Arguments.h"

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runCompile(CompileArguments arguments, const char *argv0);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMPILE_H
