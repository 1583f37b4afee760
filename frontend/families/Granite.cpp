#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Llama with a multiplier in every place.
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

} // namespace mica
