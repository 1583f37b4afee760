//===- InPlace.h - mlir-opt with one file -----------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_OPT_INPLACE_H
#define MICA_TOOLS_MICA_OPT_INPLACE_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace mica::tool {

/// Runs mlir-opt with `file` as input and output. mlir-opt truncates its output before it reads the
/// input, and removes it if a pass fails: here the file is only changed if there is a result.
llvm::Expected<int> runInPlace(int argc, char **argv, llvm::StringRef file,
                               mlir::DialectRegistry &registry);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_OPT_INPLACE_H
