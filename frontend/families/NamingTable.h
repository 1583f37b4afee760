//===- NamingTable.h - names of a family's tensors --------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_NAMINGTABLE_H
#define MICA_FRONTEND_FAMILIES_NAMINGTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace mica {

/// The order of queries, keys and values in a fused tensor: concatenated, or head by head.
enum class QkvOrder { Consecutive, PerHead };

/// A key that describes a multi-token prediction head, and its only supported value, which is JSON.
struct MtpKey {
  llvm::StringLiteral name, value;
};

/// Names of the modules of a multi-token prediction head. Those of its only layer are relative to
/// `layers`.0, all tensors begin with `prefix`. The keys are ignored if the head is left out.
struct MtpModules {
  llvm::StringLiteral prefix, layers, combine, embeddingNorm, hiddenNorm, finalNorm;
  llvm::ArrayRef<MtpKey> keys;
};

/// Names of modules; a tensor has its module's name followed by ".weight" or ".bias". Modules of
/// layers are relative to `layers`.N, the three matrices of an expert to the expert. In `expert`
/// and `sharedExpert`, the star is the index of the expert; a `sharedExpert` without a star is the
/// only one. If `qkv` or `gateUp` is set, that module contains the rows of several matrices, which
/// have names of our own.
struct NamingTable {
  llvm::StringLiteral embedding, layers, finalNorm, head, positions = "";
  llvm::StringLiteral attentionNorm, query, key, value, out, queryNorm, keyNorm;
  llvm::StringLiteral ffnNorm, gate, up, down;
  llvm::StringLiteral router, expert, expertGate, expertUp, expertDown, sharedExpert,
      sharedExpertGate = "";
  llvm::StringLiteral postAttentionNorm = "", postFfnNorm = ""; ///< of what is added to the stream
  llvm::StringLiteral qkv = "", gateUp = "";
  llvm::StringLiteral embeddingNorm = "", sinks = "";
  /// For layers with a convolution; `convIn` contains the rows of b, c and x, whose names are
  /// derived from it.
  llvm::StringLiteral convIn = "", conv = "", convOut = "";
  /// For Mamba 2; `mambaIn` contains the rows of the gate, of the inputs of the convolution and of
  /// the time steps, whose names are derived from it. The bias of time steps, A_log and D are
  /// tensors, not modules.
  llvm::StringLiteral mambaIn = "", mambaNorm = "", mambaOut = "", dtBias = "", aLog = "",
                      skip = "";
  /// For gated delta nets, in addition to `conv`, `dtBias` and `aLog`: the projections to
  /// queries, keys and values, to the gate, beta and the time steps, the norm and the output
  /// projection. If set, `deltaQkvz` contains the rows of the first two, key head by key head, and
  /// `deltaBa` those of beta and time steps, which then have names of our own.
  llvm::StringLiteral deltaQkv = "", deltaGate = "", deltaBeta = "", deltaAlpha = "",
                      deltaNorm = "", deltaOut = "", deltaQkvz = "", deltaBa = "";
  /// For latents: the down-projections, their norms, and the up-projections to heads. `queryDown`
  /// is the down-projection of queries, if they have a latent; otherwise `query` projects the
  /// stream to heads.
  llvm::StringLiteral queryDown = "", queryDownNorm = "", queryUp = "", latentDown = "",
                      latentNorm = "", latentUp = "";
  /// If set, `latentUp` is composed of two tensors of all heads: that of the keys [H, rank, plain],
  /// transposed per head, and that of the values [H, D, rank].
  llvm::StringLiteral latentUpKeys = "", latentUpValues = "";
  llvm::StringLiteral correctionBias = ""; ///< a tensor, not a module
  /// Tensors: the number that a layer multiplies, the weight of the router's norm, and a factor for
  /// each expert.
  llvm::StringLiteral layerScalar = "", routerNorm = "", expertScales = "";
  /// The norms of what enters the experts, and of the results of the dense network and of the
  /// experts beside it.
  llvm::StringLiteral expertsNorm = "", postDenseNorm = "", postExpertsNorm = "";
  /// For embeddings of layers: the table, the projection of the embedding and its norm, which are
  /// outside of layers; the gate, the output projection and its norm.
  llvm::StringLiteral perLayerTable = "", perLayerProjection = "", perLayerNorm = "",
                      perLayerGate = "", perLayerOut = "", postPerLayerNorm = "";
  /// The projections to the latents that routed experts read, and of the sum of their results.
  llvm::StringLiteral expertsIn = "", expertsOut = "";
  /// If set, `expert` has no star, and these are tensors of all experts, followed by "_bias" for
  /// biases and `stackedSuffix` for matrices. The first contains the rows of gate and up,
  /// alternating or concatenated.
  llvm::StringLiteral stackedGateUp = "", stackedDown = "", stackedSuffix = "";
  bool stackedTransposed = false; ///< the matrices are stored as [E, K, N]
  bool gateUpInterleaved = true;
  QkvOrder qkvOrder = QkvOrder::Consecutive;
  bool transposed = false;         ///< matrices of layers are stored as [K, N]
  const MtpModules *mtp = nullptr; ///< null if the family has no supported head

  /// The prefix of the base model (all modules except lm_head); empty if there is none. Files saved
  /// from the base model alone have names without it.
  llvm::StringRef baseModel() const {
    size_t end = llvm::StringRef(layers).rfind('.');
    return end == llvm::StringRef::npos ? llvm::StringRef() : layers.take_front(end + 1);
  }
};

/// The names of transformers' Llama, which most families follow.
inline constexpr NamingTable transformersNames = {
    .embedding = "model.embed_tokens",
    .layers = "model.layers",
    .finalNorm = "model.norm",
    .head = "lm_head",
    .attentionNorm = "input_layernorm",
    .query = "self_attn.q_proj",
    .key = "self_attn.k_proj",
    .value = "self_attn.v_proj",
    .out = "self_attn.o_proj",
    .queryNorm = "self_attn.q_norm",
    .keyNorm = "self_attn.k_norm",
    .ffnNorm = "post_attention_layernorm",
    .gate = "mlp.gate_proj",
    .up = "mlp.up_proj",
    .down = "mlp.down_proj",
    .router = "mlp.gate",
    .expert = "mlp.experts.*",
    .expertGate = "gate_proj",
    .expertUp = "up_proj",
    .expertDown = "down_proj",
    .sharedExpert = "mlp.shared_experts.*",
};

/// `names` as modified by `change`.
template <typename Change> constexpr NamingTable changed(NamingTable names, Change change) {
  change(names);
  return names;
}

/// The names of latent attention and of experts in DeepSeek's later generations.
inline constexpr NamingTable latentNames = changed(transformersNames, [](NamingTable &names) {
  names.sharedExpert = "mlp.shared_experts";
  names.queryDown = "self_attn.q_a_proj";
  names.queryDownNorm = "self_attn.q_a_layernorm";
  names.queryUp = "self_attn.q_b_proj";
  names.latentDown = "self_attn.kv_a_proj_with_mqa";
  names.latentNorm = "self_attn.kv_a_layernorm";
  names.latentUp = "self_attn.kv_b_proj";
  names.correctionBias = "mlp.gate.e_score_correction_bias";
});

/// The names of Meta's own code, which MiniMind's first generation follows.
inline constexpr NamingTable metaNames = {
    .embedding = "tok_embeddings",
    .layers = "layers",
    .finalNorm = "norm",
    .head = "output",
    .attentionNorm = "attention_norm",
    .query = "attention.wq",
    .key = "attention.wk",
    .value = "attention.wv",
    .out = "attention.wo",
    .queryNorm = "attention.q_norm",
    .keyNorm = "attention.k_norm",
    .ffnNorm = "ffn_norm",
    .gate = "feed_forward.w1",
    .up = "feed_forward.w3",
    .down = "feed_forward.w2",
    .router = "feed_forward.gate",
    .expert = "feed_forward.experts.*",
    .expertGate = "w1",
    .expertUp = "w3",
    .expertDown = "w2",
    .sharedExpert = "feed_forward.shared_experts",
};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_NAMINGTABLE_H
