#include "frontend/families/Families.h"
#include "frontend/families/Mamba.h"

namespace mica {

using H = Hyperparameters;

// Attention and Mamba 2 in parallel in every layer, with many multipliers.
llvm::Expected<const Family *> chooseFalconH1(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"FalconH1ForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, nameBamba);
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8), Null::Allowed},
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
      {"mamba_d_ssm", &H::mambaInner, ranges::width, int64_t(1024), Null::Allowed},
      {"mamba_norm_before_gate", &H::mambaNormFirst, {}, true},
      {"mamba_rms_norm", &H::mambaNorm, {}, false},
      {"projectors_bias", &H::mambaOutBias, {}, false},
      {"attention_bias", &H::attentionBias, {}, false},
      {"mlp_bias", &H::mlpBias, {}, false},
      {"embedding_multiplier", &H::embeddingMultiplier, ranges::multiplier, 1.0},
      {"lm_head_multiplier", &H::logitMultiplier, ranges::multiplier, 1.0},
      {"key_multiplier", &H::keyMultiplier, ranges::multiplier, 1.0},
      {"attention_in_multiplier", &H::attentionInMultiplier, ranges::multiplier, 1.0},
      {"attention_out_multiplier", &H::attentionOutMultiplier, ranges::multiplier, 1.0},
      {"ssm_in_multiplier", &H::mambaInMultiplier, ranges::multiplier, 1.0},
      {"ssm_out_multiplier", &H::mambaOutMultiplier, ranges::multiplier, 1.0},
      optionalKey("ssm_multipliers", &H::mambaMultipliers),
      optionalKey("mlp_multipliers", &H::mlpMultipliers),
  };
  static constexpr FixedKey fixed[] = {{"attn_layer_indices", "[null]"}, // all layers have both
                                       {"hidden_act", R"(["silu", "swish"])"},
                                       {"mamba_use_mlp", "[true]"},
                                       timeStepLimit};
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"mamba_chunk_size", "does not change results"},
      {"mlp_expansion_factor", "is overridden by intermediate_size"},
      {"num_logits_to_keep", "selects outputs of Python code"},
      {"time_step_floor", "only affects training"},
      {"time_step_max", "only affects training"},
      {"time_step_min", "only affects training"},
      {"time_step_rank", "is overridden by mamba_n_heads"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, mambaKeys, commonKeys()};
  static const Family family = {
      .name = "falcon_h1",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.otherMixer = Mixer::Mamba, .parallelToAttention = true},
      .names = &names,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

// The converter has applied all multipliers to the weights. llama.cpp applies the gate first.
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::mambaKeys, gguf::sizeKeys,
                                                       gguf::decoderKeys, gguf::rmsNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::convBias, "blk.*.ssm_conv1d.bias"},
                                         {&H::mambaNorm, "blk.*.ssm_norm.weight"}};
static constexpr GgufModule ggufOwnModules[] = {
    {.name = "ffn_norm", .module = &NamingTable::ffnNorm, .isBare = true}};

constexpr GgufArchitecture ggufFalconH1 = {
    .name = "falcon-h1", .keys = ggufKeys, .flags = ggufFlags, .modules = ggufOwnModules};

} // namespace mica
