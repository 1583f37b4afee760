#include "frontend/config/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Both sizes of Qwen3 norm their queries and keys per head, with a head size of its own that
// defaults to 128.
static constexpr KeyRule attentionKeys[] = {
    {"attention_bias", &H::attentionBias, {}, false},
    {"head_dim", &H::headDim, ranges::headDim, int64_t(128)},
};
static constexpr FixedKey fixedKeys[] = {
    {"use_sliding_window", "[false, null]"},
    {"partial_rotary_factor", "[1, null]"},
};

// Norms of queries and keys, head by head.
llvm::Expected<const Family *> chooseQwen3(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3ForCausalLM"};
  static const llvm::ArrayRef<KeyRule> keys[] = {attentionKeys, commonKeys()};
  static const Family qwen3 = {
      .name = "qwen3",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixedKeys,
      .traits = {.qkNorm = QkNorm::PerHead},
  };
  return &qwen3;
}

// Qwen3 with experts in every so many layers.
llvm::Expected<const Family *> chooseQwen3Moe(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3MoeForCausalLM"};
  static constexpr KeyRule expertKeys[] = {
      {"num_experts", &H::experts, ranges::experts, Unset()},
      {"num_local_experts", &H::experts, ranges::experts, Unset()},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(8)},
      {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(768)},
      {"norm_topk_prob", &H::normaliseGate, {}, false},
      {"decoder_sparse_step", &H::sparseStep, ranges::layers, int64_t(1)},
      optionalKey("mlp_only_layers", &H::denseLayers, {0, 4095}),
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {expertKeys, attentionKeys, commonKeys()};
  static const Family qwen3Moe = {
      .name = "qwen3_moe",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixedKeys,
      .traits = {.qkNorm = QkNorm::PerHead},
      .derive =
          [](Hyperparameters &h) {
            h.sparse = true;
            h.experts = h.experts.value_or(128);
          },
  };
  return &qwen3Moe;
}

} // namespace mica
