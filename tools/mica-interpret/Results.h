//===- Results.h - results of functions -------------------------*- C++ -*-===//
#ifndef MICA_TOOLS_MICA_INTERPRET_RESULTS_H
#define MICA_TOOLS_MICA_INTERPRET_RESULTS_H

#include "ir/Interpreter/Value.h"
#include "tools/mica-interpret/InterpretOptions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mica::tool {

/// Fails unless results can be written to this prefix followed by N.npy. An existing file or folder
/// with that name was probably meant instead.
llvm::Error checkOutputPrefix(llvm::StringRef prefix);

/// Prints and writes results as the options say.
llvm::Error writeResults(mlir::func::FuncOp function, llvm::ArrayRef<interp::Value> results,
                         const InterpretOptions &options);

/// Compares result i with the i-th file of --expect.
llvm::Error compareResults(mlir::func::FuncOp function, llvm::ArrayRef<interp::Value> results,
                           const InterpretOptions &options);

} // namespace mica::tool

#endif // MICA_TOOLS_MICA_INTERPRET_RESULTS_H
