//===- Reference.h - man pages and completions ------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_REFERENCE_H
#define MICA_TOOLS_MICA_REFERENCE_H

#include "tools/mica/Arguments.h"

#include <string>

namespace mica::tool {

/// Each prints its errors and returns the exit status.
int runReference(const ReferenceArguments &arguments);
int runCompletion(const std::string &shell);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_REFERENCE_H
