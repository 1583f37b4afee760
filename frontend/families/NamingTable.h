//===- NamingTable.h - what a family calls its tensors ----------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_NAMINGTABLE_H
#define MICA_FRONTEND_FAMILIES_NAMINGTABLE_H

#include "llvm/ADT/StringRef.h"

namespace mica {

/// How a tensor holds queries, keys and values: one after the other, or head by head.
enum class QkvOrder { Consecutive, PerHead };

/// Names of modules; a tensor is its module's name with ".weight" or ".bias" after it. Names of a
/// layer's modules count from `layers`.N, names of an expert's three products from the expert. In
/// `expert` and `sharedExpert` the star is the expert's index; a `sharedExpert` without a star is
/// the only one. Where `qkv` or `gateUp` is set, that module holds the rows of several products,
/// and the names of these are our own.
struct NamingTable {
  llvm::StringLiteral embedding, layers, finalNorm, head, positions = "";
  llvm::StringLiteral attentionNorm, query, key, value, out, queryNorm, keyNorm;
  llvm::StringLiteral ffnNorm, gate, up, down;
  llvm::StringLiteral router, expert, expertGate, expertUp, expertDown, sharedExpert,
      sharedExpertGate = "";
  llvm::StringLiteral postAttentionNorm = "", postFfnNorm = ""; ///< of what is added to the stream
  llvm::StringLiteral qkv = "", gateUp = "";
  llvm::StringLiteral embeddingNorm = "", sinks = "";
  /// Of layers with a convolution; `convIn` holds the rows of b, c and x, whose own names follow.
  llvm::StringLiteral convIn = "", conv = "", convOut = "";
  /// Of Mamba 2; `mambaIn` holds the rows of the gate, of the convolution's inputs and of the time
  /// steps, whose own names follow. The time steps' bias, A_log and D are tensors, not modules.
  llvm::StringLiteral mambaIn = "", mambaNorm = "", mambaOut = "", timeStepBias = "", rates = "",
                      skip = "";
  /// Of gated delta nets, beside `conv`, `timeStepBias` and `rates`: what makes queries, keys and
  /// values, the gate, beta and the time steps of the stream, the norm and what makes the result.
  /// Where set, `deltaQkvz` holds the rows of the first two key head by key head, and `deltaBa`
  /// those of the other two, whose names are then our own.
  llvm::StringLiteral deltaQkv = "", deltaGate = "", deltaBeta = "", deltaStep = "", deltaNorm = "",
                      deltaOut = "", deltaQkvz = "", deltaBa = "";
  /// Latents: what makes them, their norms, and what makes heads of them. `queryDown` holds the
  /// queries' latent, where there is one; else `query` makes heads of the stream.
  llvm::StringLiteral queryDown = "", queryDownNorm = "", queryUp = "", latentDown = "",
                      latentNorm = "", latentUp = "";
  /// Where set, what `latentUp` makes comes of two tensors of all heads, the keys' [H, rank,
  /// plain], each head's transposed, and the values' [H, D, rank].
  llvm::StringLiteral latentUpKeys = "", latentUpValues = "";
  llvm::StringLiteral correctionBias = ""; ///< a tensor, not a module
  /// Where set, `expert` has no star, and these are tensors of all experts, with "_bias" after for
  /// biases and `stackedSuffix` for matrices. The first holds the rows of gate and up, in turn or
  /// one after the other.
  llvm::StringLiteral stackedGateUp = "", stackedDown = "", stackedSuffix = "";
  bool stackedTransposed = false; ///< the matrices are stored as [E, K, N]
  bool stackedInTurn = true;
  QkvOrder qkvOrder = QkvOrder::Consecutive;
  bool transposed = false; ///< matrices of layers are stored as [K, N]

  /// What precedes the names of the module below the head; empty where nothing does. Files that
  /// were saved from that module alone have names without it.
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

/// `names` with what `change` makes of it.
template <typename Change> constexpr NamingTable changed(NamingTable names, Change change) {
  change(names);
  return names;
}

/// The names of latent attention and of the experts beside it, as DeepSeek's later generations have
/// them.
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
