#include "frontend/config/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Gemma 2 with norms of queries and keys in place of caps; layers with a window have a rope of
// their own.
llvm::Expected<const Family *> chooseGemma3Text(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Gemma3ForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.postAttentionNorm = "post_attention_layernorm";
    names.ffnNorm = "pre_feedforward_layernorm";
    names.postFfnNorm = "post_feedforward_layernorm";
  });
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(4)},
      {"head_dim", &H::headDim, ranges::headDim, int64_t(256)},
      {"attention_bias", &H::attentionBias, {}, false},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
      {"sliding_window", &H::window, ranges::window, int64_t(4096), Null::Allowed},
      {"sliding_window_pattern", &H::windowPattern, ranges::layers, int64_t(6)},
      {"rope_local_base_freq", &H::localTheta, ranges::theta, Unset()},
      {"query_pre_attn_scalar", &H::scoreScalar, ranges::multiplier, 256.0},
      {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, Unset(), Null::Allowed},
  };
  static constexpr FixedKey fixed[] = {
      {"hidden_act", R"(["gelu", "gelu_pytorch_tanh"])"},
      {"hidden_activation", R"(["gelu_pytorch_tanh", null])"},
      {"use_bidirectional_attention", "[false, null]"},
      {"attn_logit_softcapping", "[null]"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "gemma3_text",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.normRounding = NormRounding::AfterGain,
                 .gainOffset = 1,
                 .qkNorm = QkNorm::PerHead,
                 .postNorms = true,
                 .activation = Activation::GeluTanh,
                 .scalesEmbedding = true,
                 .defaultTheta = 1e6,
                 .defaultLocalTheta = 1e4,
                 .slides = [](const Hyperparameters &h,
                              int64_t layer) { return (layer + 1) % *h.windowPattern != 0; }},
      .names = &names,
  };
  return &family;
}

} // namespace mica
