#include "frontend/config/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Gemma with norms on both sides, capped scores and logits, and a window in every other layer.
llvm::Expected<const Family *> chooseGemma2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Gemma2ForCausalLM"};
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
      {"query_pre_attn_scalar", &H::scoreScalar, ranges::multiplier, 256.0},
      {"attn_logit_softcapping", &H::scoreSoftcap, ranges::multiplier, 50.0, Null::Allowed},
      {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, 30.0, Null::Allowed},
  };
  static constexpr FixedKey fixed[] = {
      {"hidden_act", R"(["gelu", "gelu_pytorch_tanh"])"},
      {"hidden_activation", R"(["gelu_pytorch_tanh", null])"},
      {"use_bidirectional_attention", "[false, null]"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "gemma2",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.normRounding = NormRounding::AfterGain,
                 .gainOffset = 1,
                 .postNorms = true,
                 .activation = Activation::GeluTanh,
                 .scalesEmbedding = true,
                 .slides = [](const Hyperparameters &, int64_t layer) { return layer % 2 == 0; }},
      .names = &names,
  };
  return &family;
}

} // namespace mica
