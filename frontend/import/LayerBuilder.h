//===- LayerBuilder.h - the function of a layer type ------------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_LAYERBUILDER_H
#define MICA_FRONTEND_IMPORT_LAYERBUILDER_H

#include "frontend/families/ModelConfig.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mica {

/// What a layer's function takes before its weights, in order: x, the states that stateNames(kind)
/// names, the layer's index in the model, with `numbered` the one in its states, sequences,
/// positions, and lengths where the kind's rope follows them.
llvm::SmallVector<llvm::StringRef> layerArguments(const LayerKind &kind, bool numbered);

/// The name of the layer's index in its states: that of its index in the model but with `numbered`.
llvm::StringRef stateLayerName(const LayerKind &kind, bool numbered);

/// Builds `name`(layerArguments..., weights...) -> (x, states...) at the insertion point. With
/// `numbered`, the layer's index in its states is another one than in the model. `weightTypes` are
/// the types of layerWeights(model, kind), in that order.
mlir::func::FuncOp buildLayer(mlir::OpBuilder &builder, llvm::StringRef name,
                              const ModelConfig &model, const LayerKind &kind,
                              llvm::ArrayRef<mlir::Type> states, bool numbered,
                              llvm::ArrayRef<mlir::Type> weightTypes);

/// What a layer keeps between calls: keys and values, or the inputs of its convolution.
llvm::ArrayRef<llvm::StringLiteral> stateNames(const LayerKind &kind);

/// Whether a layer of that kind has a rope whose frequencies follow the length.
bool followsLength(const LayerKind &kind);

/// The norm of `x`; `bias` is null where it has none.
mlir::Value buildNorm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                      mlir::Value weight, mlir::Value bias, const NormConfig &config);

/// x times `factor`; x where that is 1.
mlir::Value buildScale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, double factor);

/// tensor<?x`width`xf32>: one row per token.
mlir::RankedTensorType rowsType(mlir::OpBuilder &builder, int64_t width);

/// tensor<?xi32>: one index per row.
mlir::RankedTensorType indexRowsType(mlir::OpBuilder &builder);

/// Places the first arguments of `function` in its module under `names`, by which they are
/// printed.
void nameArguments(mlir::func::FuncOp function, llvm::ArrayRef<llvm::StringRef> names);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_LAYERBUILDER_H
