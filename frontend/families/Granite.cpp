#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Llama with multipliers of embeddings, residuals, attention and logits.
llvm::Expected<const Family *> chooseGranite(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"GraniteForCausalLM"};
  static constexpr KeyRule own[] = {
      {"attention_bias", &H::attentionBias, {}, false},
      {"mlp_bias", &H::mlpBias, {}, false},
      {"embedding_multiplier", &H::embeddingMultiplier, ranges::multiplier, 1.0},
      {"residual_multiplier", &H::residualMultiplier, ranges::multiplier, 1.0},
      {"attention_multiplier", &H::scoreScale, ranges::multiplier, 1.0},
      {"logits_scaling", &H::logitDivisor, ranges::multiplier, 1.0},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "granite",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {},
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"embedding_scale", &H::embeddingMultiplier, ranges::multiplier, 1.0},
    {"residual_scale", &H::residualMultiplier, ranges::multiplier, 1.0},
    {"attention.scale", &H::scoreScale, ranges::multiplier},
    {"logit_scale", &H::logitDivisor, ranges::multiplier},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"},
                                         {&H::mlpBias, "blk.0.ffn_gate.bias"}};

// If it is false, llama.cpp does not apply rope.
static constexpr FixedKey ggufFixed[] = {{"rope.scaling.finetuned", "[true]"}};

constexpr GgufArchitecture ggufGranite = {.name = "granite",
                                          .keys = ggufKeys,
                                          .fixed = ggufFixed,
                                          .flags = ggufFlags,
                                          .pairing = Pairing::Interleaved};

} // namespace mica
