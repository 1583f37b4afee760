#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Post-norms only; q/k norms over all heads.
llvm::Expected<const Family *> chooseOlmo2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Olmo2ForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.postAttentionNorm = "post_attention_layernorm";
    names.postFfnNorm = "post_feedforward_layernorm";
  });
  static constexpr KeyRule own[] = {
      {"attention_bias", &H::attentionBias, {}, false},
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "olmo2",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.normRounding = NormRounding::AfterWeight,
                 .qkNorm = QkNorm::AllHeads,
                 .preNorms = false,
                 .postNorms = true},
      .names = &names,
  };
  return &family;
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"}};

constexpr GgufArchitecture ggufOlmo2 = {.name = "olmo2", .keys = ggufKeys, .flags = ggufFlags};

} // namespace mica
