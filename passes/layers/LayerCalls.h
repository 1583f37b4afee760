//===- LayerCalls.h - calls of layers, to be written as a loop --*- C++ -*-===//

#ifndef MICA_PASSES_LAYERS_LAYERCALLS_H
#define MICA_PASSES_LAYERS_LAYERCALLS_H

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"

namespace mica {

/// The number of a layer, or nothing.
std::optional<int64_t> getConstant(mlir::Value value);

/// Moves what makes `values` before `place` where it follows it: fails if it needs something
/// itself.
mlir::LogicalResult moveBefore(mlir::IRRewriter &rewriter, mlir::Operation *place,
                               llvm::ArrayRef<mlir::Value> values);

/// The weight that is `weights[entry]`, all of which are fetched by mica.get_weight.
mlir::Value selectWeight(mlir::IRRewriter &rewriter, llvm::ArrayRef<mlir::Value> weights,
                         mlir::Value entry);

/// Erases calls, which a loop makes now, and the weights and constants that only they needed.
void eraseCalls(mlir::IRRewriter &rewriter, llvm::ArrayRef<mlir::func::CallOp> calls);

} // namespace mica

#endif // MICA_PASSES_LAYERS_LAYERCALLS_H
