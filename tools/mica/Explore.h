//===- Explore.h - mica explore ---------------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_EXPLORE_H
#define MICA_TOOLS_MICA_EXPLORE_H

#include "tools/explore/Record.h"
#include "tools/mica/Arguments.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mica::tool {

/// Prints its errors and returns the exit status.
int runExplore(ExploreArguments arguments);

/// Compiles MODEL to an object, and returns only the record.
llvm::Expected<explore::Record> recordModel(const ModelArguments &arguments);

/// Whether the file is treated as a compiled program because it is not a model.
bool isProgram(llvm::StringRef path);

/// The usage error for an option of the compiler that is given with a program.
std::string notForPrograms(const std::string &option);

/// The record of a program: its manifest and the hash of its code.
llvm::Expected<explore::Record> recordProgram(llvm::StringRef path);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_EXPLORE_H
