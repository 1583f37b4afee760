#include "frontend/families/Families.h"
#include "frontend/families/QwenExperts.h"

namespace mica {

using H = Hyperparameters;

// Qwen2 with experts and a gated shared expert.
llvm::Expected<const Family *> chooseQwen2Moe(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen2MoeForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, nameSharedExpert);
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(16), Null::Allowed},
      {"qkv_bias", &H::attentionBias, {}, true},
      {"use_sliding_window", &H::useWindow, {}, false},
      {"sliding_window", &H::window, ranges::window, int64_t(4096), Null::Allowed},
      {"max_window_layers", &H::windowLayers, {0, 4096}, int64_t(28)},
      {"num_experts", &H::experts, ranges::maybeExperts, int64_t(60)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(4)},
      {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(1408)},
      {"shared_expert_intermediate_size", &H::sharedInner, ranges::width, int64_t(5632)},
      {"norm_topk_prob", &H::normalizeGate, {}, false},
      {"decoder_sparse_step", &H::sparseStep, ranges::layers, int64_t(1)},
      optionalKey("mlp_only_layers", &H::denseLayers, {0, 4095}),
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "qwen2_moe",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.sharedGate = true,
                 .usesSlidingWindow =
                     [](const Hyperparameters &h, int64_t layer) {
                       return layer % 2 == 0 && layer < *h.windowLayers;
                     }},
      .names = &names,
      .derive =
          [](Hyperparameters &h) {
            h.sparse = true;
            h.outBias = false;
          },
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"expert_shared_feed_forward_length", &H::sharedInner, ranges::width, Unset()},
    {"expert_weights_norm", &H::normalizeGate, {}, false},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::expertKeys, gguf::sizeKeys,
                                                       gguf::decoderKeys, gguf::rmsNormKeys};
static constexpr IgnoredKeyRow ggufIgnoredKeys[] = {gguf::ignoredWindow};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"}};

constexpr GgufArchitecture ggufQwen2Moe = {
    .name = "qwen2moe",
    .keys = ggufKeys,
    .fixed = gguf::expertFixedKeys,
    .ignoredKeys = ggufIgnoredKeys,
    .flags = ggufFlags,
    .derive =
        [](const GgufKeys &keys, Hyperparameters &h) {
          h.sharedInner = h.sharedInner.value_or(*h.inner);
          return deriveGgufExperts(keys, h);
        },
};

} // namespace mica
