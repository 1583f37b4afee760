//===- Interpret.h - runs functions of a file -------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_INTERPRET_INTERPRET_H
#define MICA_TOOLS_MICA_INTERPRET_INTERPRET_H

#include "tools/mica-interpret/InterpretOptions.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"

namespace mica::tool {

/// Runs the functions of a file as the options say, and prints how many were checked.
llvm::Error interpretFile(const InterpretOptions &options, mlir::MLIRContext &context);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_INTERPRET_INTERPRET_H
