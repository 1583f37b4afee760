//===- WeightPlan.h - the tensors that a model needs ------------*- C++ -*-===//
//
// A model's weights by name and shape, determined from its config alone. The same list defines the
// order of the arguments of layer functions.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_FRONTEND_IMPORT_WEIGHTPLAN_H
#define MICA_FRONTEND_IMPORT_WEIGHTPLAN_H

#include "frontend/families/ModelConfig.h"
#include "ir/Mica/TensorPart.h"

#include <optional>
#include <string>
#include <vector>

namespace mica {

/// A weight of a layer type: one argument of its function. `name` is relative to the layer
/// ("self_attn.q_proj.weight"), with a star for the index of an expert.
struct LayerWeight {
  std::string name;
  llvm::SmallVector<int64_t, 3> shape; ///< [E, ...] if stacked
  int64_t stacked = 0;                 ///< number of stacked tensors; 0: a single tensor
  /// The tensor or part of one, if it is not the tensor `name`. If there are several sources, the
  /// index of each replaces the star in the tensor's name or, without a star, selects an entry of
  /// the tensor.
  std::optional<TensorPart> source = {};
  int64_t joined = 0; ///< number of sources that are concatenated along the rows; 0: a single
                      ///< source
  /// Further sources, if they are other parts of the same tensor.
  std::vector<TensorPart> more = {};
};

/// The weights of a layer type, in the order of its function's arguments.
std::vector<LayerWeight> layerWeights(const ModelConfig &model, const LayerType &kind);

/// The name of shared expert `index`, relative to the layer.
std::string sharedExpertName(const NamingTable &names, int64_t index);

/// A planned weight symbol: its name, its shape and its sources, which are tensors of the
/// checkpoint or parts of them. Those of experts are stacked along a new first axis, even if there
/// is only one expert; others are concatenated along the rows. `type` is set when tensors are
/// matched.
struct PlannedWeight {
  std::string symbol;
  llvm::SmallVector<TensorPart, 1> sources;
  llvm::SmallVector<int64_t, 3> shape;
  bool stacked = false;
  StoredType type = StoredType::F32;
  const BlockFormat *blocks = nullptr; ///< block format of the tensors, or null

  /// The required shape of a source: for concatenated sources, its share of the rows.
  llvm::SmallVector<int64_t, 3> shapeOf(const TensorPart &source) const;
};

/// The multi-token prediction head of Qwen's models: from the final hidden state of a position and
/// the embedding of the next token, a further layer computes what the head of the model maps to the
/// logits of the token after it.
struct MtpWeights {
  PlannedWeight embeddingNorm, hiddenNorm;
  /// The halves of the projection that are applied to the embedding and to the hidden state.
  PlannedWeight ofEmbedding, ofHidden;
  std::vector<PlannedWeight> layer; ///< as in WeightPlan::layers
  PlannedWeight finalNorm;
};

/// The weights of the embeddings that layers add, [T, layers, dim]: the table, whose rows have
/// those of all layers, the projection of the token's embedding, and the norm of what it projects.
struct PerLayerWeights {
  PlannedWeight table, projection, norm;
};

/// Whether a model is read with its multi-token prediction head.
enum class MtpHead { LeftOut, Kept };

struct WeightPlan {
  PlannedWeight embedding, finalNorm;
  std::optional<PlannedWeight> finalNormBias, positions, embeddingNorm, embeddingNormBias;
  std::optional<PerLayerWeights> perLayer;
  std::optional<PlannedWeight> head;              ///< absent if tied to the embedding
  std::vector<std::vector<PlannedWeight>> layers; ///< per layer, in the order of layerWeights
  std::optional<MtpWeights> mtp;                  ///< present if it is kept
};

/// The layer type of the multi-token prediction head: that of the model's last layer whose only
/// mixer is attention. Null if there is none, or if the family's heads are not supported
/// (NamingTable::mtp).
const LayerType *mtpLayerType(const ModelConfig &model);

/// With MtpHead::Kept, the model must have an mtpLayerType and names of the head (mtpNames).
WeightPlan planWeights(const ModelConfig &model, MtpHead mtp = MtpHead::LeftOut);

/// All weights of `plan`.
llvm::SmallVector<PlannedWeight *> allWeights(WeightPlan &plan);

/// All weights of a multi-token prediction head, MtpWeights or const MtpWeights, in the order in
/// which modules declare them.
template <typename Head> auto allWeightsOfHead(Head &mtp) {
  llvm::SmallVector<decltype(&mtp.finalNorm)> all = {&mtp.embeddingNorm, &mtp.hiddenNorm,
                                                     &mtp.ofEmbedding, &mtp.ofHidden};
  for (auto &weight : mtp.layer)
    all.push_back(&weight);
  all.push_back(&mtp.finalNorm);
  return all;
}

} // namespace mica

#endif // MICA_FRONTEND_IMPORT_WEIGHTPLAN_H
