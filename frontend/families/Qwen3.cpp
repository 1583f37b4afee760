#include "frontend/families/Families.h"
#include "frontend/families/QwenExperts.h"

namespace mica {

using H = Hyperparameters;

// Both variants of Qwen3 normalize queries and keys per head; the head size has its own key, which
// defaults to 128.
static constexpr KeyRule attentionKeys[] = {
    {"attention_bias", &H::attentionBias, {}, false},
    {"head_dim", &H::headDim, ranges::headDim, int64_t(128)},
    {"use_sliding_window", &H::useWindow, {}, false, Null::Allowed},
    {"sliding_window", &H::window, ranges::window, int64_t(4096), Null::Allowed},
    {"max_window_layers", &H::windowLayers, {0, 4096}, int64_t(28), Null::Allowed},
};
static constexpr FixedKey fixedKeys[] = {{"partial_rotary_factor", "[1, null]"}};

// q/k norms per head; the later layers may have a sliding window.
llvm::Expected<const Family *> chooseQwen3(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3ForCausalLM"};
  static const llvm::ArrayRef<KeyRule> keys[] = {attentionKeys, commonKeys()};
  static const Family qwen3 = {
      .name = "qwen3",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixedKeys,
      .traits = {.qkNorm = QkNorm::PerHead,
                 .usesSlidingWindow =
                     [](const Hyperparameters &h, int64_t layer) {
                       return layer >= h.windowLayers.value_or(28);
                     }},
      .derive = [](Hyperparameters &h) { h.useWindow = h.useWindow.value_or(false); },
  };
  return &qwen3;
}

// Qwen3 with experts in every n-th layer; a sliding window applies to all layers.
llvm::Expected<const Family *> chooseQwen3Moe(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3MoeForCausalLM"};
  static constexpr KeyRule expertKeys[] = {
      {"num_experts", &H::experts, ranges::maybeExperts, Unset()},
      {"num_local_experts", &H::experts, ranges::maybeExperts, Unset()},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(8)},
      {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(768)},
      {"norm_topk_prob", &H::normalizeGate, {}, false},
      {"decoder_sparse_step", &H::sparseStep, ranges::layers, int64_t(1)},
      optionalKey("mlp_only_layers", &H::denseLayers, {0, 4095}),
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {expertKeys, attentionKeys, commonKeys()};
  static const Family qwen3Moe = {
      .name = "qwen3_moe",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixedKeys,
      .traits = {.qkNorm = QkNorm::PerHead, .usesSlidingWindow = everyLayerUsesSlidingWindow},
      .derive =
          [](Hyperparameters &h) {
            h.sparse = true;
            h.useWindow = h.useWindow.value_or(false);
            h.experts = h.experts.value_or(128);
          },
  };
  return &qwen3Moe;
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
static constexpr IgnoredKeyRow ggufIgnoredKeys[] = {gguf::ignoredWindow};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"}};

constexpr GgufArchitecture ggufQwen3 = {
    .name = "qwen3", .keys = ggufKeys, .ignoredKeys = ggufIgnoredKeys, .flags = ggufFlags};

static constexpr KeyRule ggufOwnOfMoe[] = {{"expert_weights_norm", &H::normalizeGate, {}, true}};
static constexpr llvm::ArrayRef<KeyRule> ggufKeysOfMoe[] = {
    ggufOwnOfMoe, gguf::expertKeys, gguf::sizeKeys, gguf::decoderKeys, gguf::rmsNormKeys};

constexpr GgufArchitecture ggufQwen3Moe = {
    .name = "qwen3moe",
    .keys = ggufKeysOfMoe,
    .fixed = gguf::expertFixedKeys,
    .ignoredKeys = ggufIgnoredKeys,
    .flags = ggufFlags,
    .derive = deriveGgufExperts,
};

} // namespace mica
