//===- ModelFiles.h - the files that a model is made of ---------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_MODELFILES_H
#define MICA_TOOLS_MICA_MODELFILES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <set>
#include <string>

namespace mica::tool {

/// The files that MODEL, a folder, a GGUF file or a `.mlir` file, can be made of, whether or not
/// this version reads them.
std::set<std::string> modelFiles(llvm::StringRef model);

/// Refuses to write to `output`, which `option` has named, where one of the model's files stands
/// there, by whatever name or link.
llvm::Error protectModel(llvm::StringRef model, llvm::StringRef output, llvm::StringRef option);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_MODELFILES_H
