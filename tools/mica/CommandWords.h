//===- CommandWords.h - the words before options are parsed -----*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_COMMANDWORDS_H
#define MICA_TOOLS_MICA_COMMANDWORDS_H

#include "backends/runtime/support/Result.h"

#include "llvm/ADT/ArrayRef.h"

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace mica::tool {

/// Describes a problem with the command among `words`; empty if it is known or there is an option.
std::string wrongCommand(const CLI::App &app, const std::vector<std::string> &words);

/// `mica run ...`: extracts MODEL and the compiler's options from the arguments; the rest is
/// passed to the program, whose options may precede MODEL.
rt::Result<std::vector<std::string>>
splitRunArguments(CLI::App &run, llvm::ArrayRef<std::string> given, std::vector<std::string> &rest);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_COMMANDWORDS_H
