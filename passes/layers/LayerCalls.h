//===- LayerCalls.h - calls of layers, to be rolled into a loop -*- C++ -*-===//

#ifndef MICA_PASSES_LAYERS_LAYERCALLS_H
#define MICA_PASSES_LAYERS_LAYERCALLS_H

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mica {

/// The value of a constant of type `index`, such as a layer index; nullopt for other values.
std::optional<int64_t> getConstant(mlir::Value value);

/// Moves the ops that define `values` before `place` if they come after it. Fails if one of these
/// has operands or side effects.
mlir::LogicalResult moveBefore(mlir::IRRewriter &rewriter, mlir::Operation *place,
                               llvm::ArrayRef<mlir::Value> values);

/// Selects `weights[entry]`; all of `weights` must be results of mica.get_weight.
mlir::Value selectWeight(mlir::IRRewriter &rewriter, llvm::ArrayRef<mlir::Value> weights,
                         mlir::Value entry);

/// Erases calls that a loop has replaced, and the weights and constants that only they used.
void eraseCalls(mlir::IRRewriter &rewriter, llvm::ArrayRef<mlir::func::CallOp> calls);

} // namespace mica

#endif // MICA_PASSES_LAYERS_LAYERCALLS_H
