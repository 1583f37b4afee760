#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Parallel residual with one shared norm; optional q/k norms with a weight per head.
llvm::Expected<const Family *> chooseCohere(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"CohereForCausalLM"};
  static constexpr KeyRule own[] = {
      {"layer_norm_eps", &H::eps, ranges::eps, 1e-5},
      {"attention_bias", &H::attentionBias, {}, false},
      {"use_qk_norm", &H::qkNorm, {}, false},
      {"logit_scale", &H::logitMultiplier, ranges::multiplier, 0.0625},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "cohere",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.pairing = Pairing::Interleaved,
                 .norm = NormKind::Layer,
                 .qkNorm = QkNorm::OwnPerHead,
                 .parallel = Parallel::SharedNorm,
                 .defaultTheta = 500000},
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {{"logit_scale", &H::logitMultiplier, ranges::multiplier}};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::layerNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"},
                                         {&H::qkNorm, "blk.0.attn_q_norm.weight"}};

constexpr GgufArchitecture ggufCohere = {.name = "command-r", .keys = ggufKeys, .flags = ggufFlags};

} // namespace mica
