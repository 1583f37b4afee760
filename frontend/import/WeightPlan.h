//===- WeightPlan.h - which tensors a model needs ---------------*- C++ -*-===//
//
// A model's weights by name and shape, planned from its config alone. The same list gives the
// arguments of a layer function their order.
//
//===----------------------------------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_IMPORT_WEIGHTPLAN_H
#define MICA_FRONTEND_IMPORT_WEIGHTPLAN_H

#include "frontend/families/ModelConfig.h"
#include "ir/Mica/TensorPart.h"

#include <optional>
#include <string>
#include <vector>

namespace mica {

/// A weight of a layer type: one argument of its function. `name` counts from the layer
/// ("self_attn.q_proj.weight"), with a star where the index of an expert is.
struct LayerWeight {
  std::string name;
  llvm::SmallVector<int64_t, 3> shape; ///< with E in front where it is stacked
  int64_t stacked = 0; ///< number of tensors stacked into it, 0 where it is one tensor
  /// The tensor or the part of one that it is, where that is not the tensor `name`. Of several
  /// sources each has its index in place of the star in the tensor's name, or, without a star, is
  /// that entry of the tensor.
  std::optional<TensorPart> source = {};
  int64_t joined = 0; ///< number of sources whose rows follow each other, 0 where it is one
  /// Sources after the first, where these are other parts of the same tensor.
  std::vector<TensorPart> more = {};
};

/// The weights of a layer type, in the order of its function's arguments.
std::vector<LayerWeight> layerWeights(const ModelConfig &model, const LayerKind &kind);

/// The name of the shared expert `index`, counted from the layer.
std::string sharedExpertName(const NamingTable &names, int64_t index);

/// A weight symbol to be: its name, its shape and the tensors of the checkpoint, or the parts of
/// tensors, that it is made of. Those of experts are stacked along a new
/// leading axis, even where there is one expert; the rows of others follow each other. `type` is
/// known once the tensors were matched.
struct PlannedWeight {
  std::string symbol;
  llvm::SmallVector<TensorPart, 1> sources;
  llvm::SmallVector<int64_t, 3> shape;
  bool stacked = false;
  StoredType type = StoredType::F32;
  const BlockFormat *blocks = nullptr; ///< where the tensors are stored in blocks

  /// The shape that a source must have: of rows that follow each other, the source's share.
  llvm::SmallVector<int64_t, 3> shapeOf(const TensorPart &source) const;
};

struct WeightPlan {
  PlannedWeight embedding, finalNorm;
  std::optional<PlannedWeight> finalNormBias, positions, embeddingNorm, embeddingNormBias;
  std::optional<PlannedWeight> head;              ///< absent where the embedding is the head
  std::vector<std::vector<PlannedWeight>> layers; ///< per layer, in the order of layerWeights
};

WeightPlan planWeights(const ModelConfig &model);

/// All weights of `plan`.
llvm::SmallVector<PlannedWeight *> allWeights(WeightPlan &plan);

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_WEIGHTPLAN_H
