//===- ModelFiles.h - files of a model --------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_MODELFILES_H
#define MICA_TOOLS_MICA_MODELFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <set>
#include <string>

namespace mica::tool {

/// The files that may be part of MODEL, a folder, a GGUF file or a `.mlir` file, even if this
/// version does not read them.
std::set<std::string> modelFiles(llvm::StringRef model);

/// Error: `output`, the value of `option`, is one of the model's files, by whatever name or link.
llvm::Error protectModel(llvm::StringRef model, llvm::StringRef output, llvm::StringRef option);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_MODELFILES_H
