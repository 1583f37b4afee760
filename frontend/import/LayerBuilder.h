//===- LayerBuilder.h - the function of a layer type ------------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_LAYERBUILDER_H
#define MICA_FRONTEND_IMPORT_LAYERBUILDER_H

#include "frontend/families/ModelConfig.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mica {

/// Builds `name`(layerArguments..., weights...) -> (x, states...) at the insertion point. With
/// `numbered`, the layer's index in its states differs from that in the model. `weightTypes` are
/// the types of layerWeights(model, kind), in that order.
mlir::func::FuncOp buildLayer(mlir::OpBuilder &builder, llvm::StringRef name,
                              const ModelConfig &model, const LayerType &kind,
                              llvm::ArrayRef<mlir::Type> states, bool numbered,
                              llvm::ArrayRef<mlir::Type> weightTypes);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_LAYERBUILDER_H
