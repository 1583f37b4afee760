//===- LayerPart.h - what the parts of a layer share ------------*- C++ -*-===//
#ifndef MICA_FRONTEND_IMPORT_LAYERPART_H
#define MICA_FRONTEND_IMPORT_LAYERPART_H

#include "frontend/import/BuildOps.h"

#include "llvm/ADT/StringMap.h"

namespace mica {

/// The arguments of a layer function. The values of states change while it is built.
struct LayerValues {
  mlir::Value x, sequences, positions;
  mlir::Value layer;      ///< index of the layer in the model
  mlir::Value stateLayer; ///< index of the layer in its states; null if it has none
  mlir::Value lengths;    ///< null if the rope of the layer type does not depend on them
  mlir::Value perLayer;   ///< embeddings of all layers; null if the layer type adds none
  llvm::SmallVector<mlir::Value> states; ///< in the order of layerStates
  llvm::StringMap<mlir::Value> weights;  ///< those that the layer type has
};

/// Base class of what builds a part of a layer: the layer, and ops on the weights of its modules.
/// Copies build parts of the same layer.
class LayerPart {
public:
  LayerPart(mlir::OpBuilder &builder, const ModelConfig &model, const LayerType &kind,
            LayerValues &values)
      : builder(builder), model(model), names(*model.names), kind(kind), values(values),
        sequences(values.sequences), positions(values.positions), stateLayer(values.stateLayer) {}

protected:
  /// A matmul with the weight of a module, and its bias if it has one.
  mlir::Value linear(mlir::Value x, const llvm::Twine &module) const;
  /// The norm with the weight of a module, and its bias if it has one.
  mlir::Value norm(mlir::Value x, llvm::StringRef module, const NormConfig &config) const;
  mlir::Value activate(mlir::Value x, Activation activation, mlir::Location loc) const;
  /// Splits rows into `count` heads of `size` elements.
  mlir::Value heads(mlir::Value rows, int64_t count, int64_t size, const llvm::Twine &module) const;

  /// The location of a module in any layer: "model.layers.*.self_attn.q_proj".
  mlir::Location at(const llvm::Twine &module) const {
    return layerLocation(builder, names, module);
  }
  /// The module that contains `module`: its name without the last component.
  static std::string parentOf(llvm::StringRef module) { return module.rsplit('.').first.str(); }
  /// The attention module contains the query.
  std::string attentionModule() const { return parentOf(names.query); }
  /// A weight by its name; null if the layer type does not have it.
  mlir::Value weight(const llvm::Twine &name) const { return values.weights.lookup(name.str()); }
  /// The current value of a state, by its name in layerStates.
  mlir::Value &state(llvm::StringRef name) const;

  mlir::OpBuilder &builder;
  const ModelConfig &model;
  const NamingTable &names;
  const LayerType &kind;
  LayerValues &values;
  mlir::Value sequences, positions, stateLayer;
};

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_LAYERPART_H
