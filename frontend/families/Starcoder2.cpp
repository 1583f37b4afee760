#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Layer norms, an MLP without gate, biases everywhere, an optional sliding window.
llvm::Expected<const Family *> chooseStarcoder2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Starcoder2ForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
  });
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(2)},
      {"norm_epsilon", &H::eps, ranges::eps, 1e-5},
      {"use_bias", &H::attentionBias, {}, true},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
      optionalKey("sliding_window", &H::window, ranges::window),
  };
  static constexpr FixedKey fixed[] = {
      {"mlp_type", R"(["default"])"},
      {"norm_type", R"(["layer_norm"])"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "starcoder2",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.norm = NormKind::Layer,
                 .normBias = true,
                 .gated = false,
                 .activation = Activation::GeluTanh,
                 .usesSlidingWindow = everyLayerUsesSlidingWindow},
      .names = &names,
      .derive = [](Hyperparameters &h) { h.mlpBias = h.attentionBias; },
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {gguf::windowKey};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::layerNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"}};

constexpr GgufArchitecture ggufStarcoder2 = {
    .name = "starcoder2", .keys = ggufKeys, .flags = ggufFlags};

} // namespace mica
