//===- Calls.h - functions changed together with their calls ----*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_CALLS_H
#define MICA_PASSES_SUPPORT_CALLS_H

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mica {

/// The calls of a private function that nothing but calls refers to; nothing when it may be called
/// from elsewhere.
std::optional<llvm::SmallVector<mlir::func::CallOp>> findCalls(mlir::func::FuncOp function);

/// Adds an argument before argument `index`; `values` holds what each of `calls` passes.
mlir::BlockArgument insertArgument(mlir::RewriterBase &rewriter, mlir::func::FuncOp function,
                                   unsigned index, mlir::Type type, mlir::Location loc,
                                   llvm::ArrayRef<mlir::func::CallOp> calls,
                                   mlir::ValueRange values);

/// Removes unused arguments, and at the calls their operands where these have no other use.
void eraseArguments(mlir::RewriterBase &rewriter, mlir::func::FuncOp function,
                    const llvm::BitVector &indices, llvm::ArrayRef<mlir::func::CallOp> calls);

/// Makes the type of `function` agree with its body after the types of arguments or results have
/// changed.
void updateFunctionType(mlir::func::FuncOp function);

/// Gives every state of the module the type that `convert` returns, and makes the types of
/// functions and of what is read from states agree.
void convertStates(mlir::ModuleOp module,
                   llvm::function_ref<mlir::Type(SequenceState, mlir::Value)> convert);

} // namespace mica

#endif // MICA_PASSES_SUPPORT_CALLS_H
