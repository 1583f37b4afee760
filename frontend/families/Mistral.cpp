#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Llama with a sliding window in every layer.
llvm::Expected<const Family *> chooseMistral(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"MistralForCausalLM"};
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8), Null::Allowed},
      {"sliding_window", &H::window, ranges::window, int64_t(4096), Null::Allowed},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "mistral",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.usesSlidingWindow = everyLayerUsesSlidingWindow},
  };
  return &family;
}

} // namespace mica
