//===- Calls.h - functions changed together with their calls ----*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_CALLS_H
#define MICA_PASSES_SUPPORT_CALLS_H

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mica {

/// The calls of a private function that is only referenced by calls; nullopt if it may have other
/// users.
std::optional<llvm::SmallVector<mlir::func::CallOp>> findCalls(mlir::func::FuncOp function);

/// Inserts an argument at `index`; `values` are the operands that each of `calls` passes for it.
mlir::BlockArgument insertArgument(mlir::RewriterBase &rewriter, mlir::func::FuncOp function,
                                   unsigned index, mlir::Type type, mlir::Location loc,
                                   llvm::ArrayRef<mlir::func::CallOp> calls,
                                   mlir::ValueRange values);

/// Removes unused arguments, and the ops that produce their operands at the calls if they have no
/// other use.
void eraseArguments(mlir::RewriterBase &rewriter, mlir::func::FuncOp function,
                    const llvm::BitVector &indices, llvm::ArrayRef<mlir::func::CallOp> calls);

/// Updates the type of `function` after the types of its arguments or results have changed.
void updateFunctionType(mlir::func::FuncOp function);

/// Applies `convert` to every state type in the module: values, function types and results of
/// reads.
void convertStates(mlir::ModuleOp module,
                   llvm::function_ref<mlir::Type(SequenceState, mlir::Value)> convert);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_CALLS_H
