#include "frontend/families/Families.h"
#include "frontend/families/Mamba.h"

namespace mica {

using H = Hyperparameters;

// Mamba 2 in most layers, attention in the others; half of each head is rotated.
llvm::Expected<const Family *> chooseBamba(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"BambaForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, nameBamba);
  static constexpr KeyRule own[] = {
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8), Null::Allowed},
      optionalKey("attn_layer_indices", &H::attentionLayers),
      {"attention_bias", &H::attentionBias, {}, false},
      {"mlp_bias", &H::mlpBias, {}, false},
  };
  static constexpr FixedKey fixed[] = {{"hidden_act", R"(["silu", "swish"])"}, timeStepLimit};
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"attn_rotary_emb", "is overridden by the share of a head that is rotated"},
      {"mamba_chunk_size", "does not change results"},
      {"num_logits_to_keep", "selects outputs of Python code"},
      {"z_loss_coefficient", "only affects training"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, mambaKeys, commonKeys()};
  static const Family family = {
      .name = "bamba",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.otherMixer = Mixer::Mamba, .partialRotary = 0.5},
      .names = &names,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

} // namespace mica
