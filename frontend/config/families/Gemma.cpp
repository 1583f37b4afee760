#include "frontend/config/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Gains are stored minus one, embeddings scaled by the root of their size. The first files say
// "gelu" and mean its tanh approximation.
llvm::Expected<const Family *> chooseGemma(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"GemmaForCausalLM"};
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(16)},
      {"head_dim", &H::headDim, ranges::headDim, int64_t(256)},
      {"attention_bias", &H::attentionBias, {}, false},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
  };
  static constexpr FixedKey fixed[] = {
      {"hidden_act", R"(["gelu", "gelu_pytorch_tanh"])"},
      {"hidden_activation", R"(["gelu_pytorch_tanh", null])"},
      {"use_bidirectional_attention", "[false, null]"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "gemma",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.normRounding = NormRounding::AfterGain,
                 .gainOffset = 1,
                 .activation = Activation::GeluTanh,
                 .scalesEmbedding = true},
  };
  return &family;
}

} // namespace mica
