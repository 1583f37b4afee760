#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// The decoder that most others are described against: RMS norms in front, rope, a gated network.
llvm::Expected<const Family *> chooseLlama(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"LlamaForCausalLM"};
  static constexpr KeyRule own[] = {
      {"attention_bias", &H::attentionBias, {}, false},
      {"mlp_bias", &H::mlpBias, {}, false},
  };
  static constexpr FixedKey fixed[] = {
      {"pretraining_tp", "[1, null]"},
      {"rope_interleaved", "[false]"},
      {"partial_rotary_factor", "[1, null]"},
      {"sliding_window", "[null]"},
  };
  static constexpr UnreadKey unread[] = {{"is_llama_config", reasons::bookkeeping}};
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family llama = {
      .name = "llama",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {},
      .unread = unread,
  };
  return &llama;
}

} // namespace mica
