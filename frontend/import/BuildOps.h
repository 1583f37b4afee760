//===- BuildOps.h - ops that layers and the model share ---------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_BUILDOPS_H
#define MICA_FRONTEND_IMPORT_BUILDOPS_H

#include "frontend/families/ModelConfig.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mica {

/// Builds the norm of `x`; `bias` is null if it has none.
mlir::Value buildNorm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x,
                      mlir::Value weight, mlir::Value bias, const NormConfig &config);

/// Builds x times `factor`; returns x if the factor is 1.
mlir::Value buildScale(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value x, double factor);

/// tensor<?x`width`xf32>: one row per token.
mlir::RankedTensorType rowsType(mlir::OpBuilder &builder, int64_t width);

/// tensor<?x`layers`x`dim`xf32>: the embeddings of all layers.
mlir::RankedTensorType perLayerInputsType(mlir::OpBuilder &builder, const ModelConfig &model,
                                          const PerLayerConfig &config);

/// tensor<?xi32>: one index per row.
mlir::RankedTensorType indexRowsType(mlir::OpBuilder &builder);

/// The location of a module or weight in any layer: "model.layers.*.self_attn.q_proj".
mlir::Location layerLocation(mlir::OpBuilder &builder, const NamingTable &names,
                             const llvm::Twine &module);

/// Names the locations of the first arguments of `function`, so that they are printed with these
/// names.
void nameArguments(mlir::func::FuncOp function, llvm::ArrayRef<llvm::StringRef> names);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_BUILDOPS_H
