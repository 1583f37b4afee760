//===- Verify.h - mica verify -----------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_VERIFY_H
#define MICA_TOOLS_MICA_VERIFY_H

#include "tools/mica/Arguments.h"

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runVerify(VerifyArguments arguments, const char *argv0);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_VERIFY_H
