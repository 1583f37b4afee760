//===- Pull.h - mica pull, and models by their name on the hub --*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_PULL_H
#define MICA_TOOLS_MICA_PULL_H

#include "tools/mica/Arguments.h"

#include "llvm/Support/Error.h"

#include <string>

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runPull(const PullArguments &arguments);

/// MODEL as a path: itself, if it exists or cannot be OWNER/NAME; otherwise the path of that model
/// of the hub, which is pulled with a progress bar if necessary.
llvm::Expected<std::string> modelPath(const std::string &model);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_PULL_H
