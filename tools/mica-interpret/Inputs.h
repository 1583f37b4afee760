//===- Inputs.h - arguments of functions ------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_INTERPRET_INPUTS_H
#define MICA_TOOLS_MICA_INTERPRET_INPUTS_H

#include "ir/Interpreter/Value.h"
#include "tools/mica-interpret/InterpretOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mica::tool {

/// The value of type `type` in a .npy file.
llvm::Expected<interp::Value> readInput(llvm::StringRef path, mlir::Type type);

/// The arguments of `function`: caches are created, others are read from --input in order.
llvm::Expected<llvm::SmallVector<interp::Value>> makeArguments(mlir::func::FuncOp function,
                                                               const InterpretOptions &options);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_INTERPRET_INPUTS_H
