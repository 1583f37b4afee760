//===- Families.h - the families' files, for the registry only --*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_FAMILIES_H
#define MICA_FRONTEND_FAMILIES_FAMILIES_H

#include "frontend/families/Family.h"
#include "frontend/families/GgufArchitecture.h"

#include <algorithm>

/// FAMILY(model_type, the name after `choose`), sorted by model_type; GGUF_FAMILY of those whose
/// file has a row for GGUF files as well, of the same name after `gguf`.
#define MICA_FAMILIES(FAMILY, GGUF_FAMILY)                                                         \
  FAMILY("bamba", Bamba)                                                                           \
  GGUF_FAMILY("bloom", Bloom)                                                                      \
  GGUF_FAMILY("cohere", Cohere)                                                                    \
  GGUF_FAMILY("deepseek", DeepSeek)                                                                \
  GGUF_FAMILY("deepseek_v2", DeepSeekV2)                                                           \
  GGUF_FAMILY("deepseek_v3", DeepSeekV3)                                                           \
  FAMILY("falcon_h1", FalconH1)                                                                    \
  GGUF_FAMILY("gemma", Gemma)                                                                      \
  GGUF_FAMILY("gemma2", Gemma2)                                                                    \
  GGUF_FAMILY("gemma3_text", Gemma3Text)                                                           \
  GGUF_FAMILY("glm4", Glm4)                                                                        \
  GGUF_FAMILY("gpt2", Gpt2)                                                                        \
  GGUF_FAMILY("gpt_neox", GptNeoX)                                                                 \
  GGUF_FAMILY("gpt_oss", GptOss)                                                                   \
  GGUF_FAMILY("granite", Granite)                                                                  \
  FAMILY("granitemoehybrid", GraniteMoeHybrid)                                                     \
  GGUF_FAMILY("lfm2", Lfm2)                                                                        \
  GGUF_FAMILY("lfm2_moe", Lfm2Moe)                                                                 \
  GGUF_FAMILY("llama", Llama)                                                                      \
  FAMILY("mamba2", Mamba2)                                                                         \
  FAMILY("minimind", MiniMind)                                                                     \
  FAMILY("mistral", Mistral)                                                                       \
  GGUF_FAMILY("mixtral", Mixtral)                                                                  \
  GGUF_FAMILY("olmo2", Olmo2)                                                                      \
  GGUF_FAMILY("phi3", Phi3)                                                                        \
  GGUF_FAMILY("qwen2", Qwen2)                                                                      \
  GGUF_FAMILY("qwen2_moe", Qwen2Moe)                                                               \
  GGUF_FAMILY("qwen3", Qwen3)                                                                      \
  FAMILY("qwen3_5", Qwen35)                                                                        \
  FAMILY("qwen3_5_moe", Qwen35Moe)                                                                 \
  FAMILY("qwen3_5_moe_text", Qwen35MoeText)                                                        \
  FAMILY("qwen3_5_text", Qwen35Text)                                                               \
  GGUF_FAMILY("qwen3_moe", Qwen3Moe)                                                               \
  FAMILY("qwen3_next", Qwen3Next)                                                                  \
  GGUF_FAMILY("stablelm", StableLm)                                                                \
  GGUF_FAMILY("starcoder2", Starcoder2)                                                            \
  FAMILY("xglm", Xglm)

namespace mica {

#define MICA_DECLARE(modelType, name)                                                              \
  llvm::Expected<const Family *> choose##name(const FamilyEvidence &evidence);
#define MICA_DECLARE_GGUF(modelType, name)                                                         \
  MICA_DECLARE(modelType, name)                                                                    \
  extern const GgufArchitecture gguf##name;
MICA_FAMILIES(MICA_DECLARE, MICA_DECLARE_GGUF)
#undef MICA_DECLARE_GGUF
#undef MICA_DECLARE

/// The names of Mamba 2 in layers that may have attention instead.
constexpr void nameMamba(NamingTable &names) {
  names.conv = "mamba.conv1d";
  names.mambaIn = "mamba.in_proj";
  names.mambaNorm = "mamba.norm";
  names.mambaOut = "mamba.out_proj";
  names.timeStepBias = "mamba.dt_bias";
  names.rates = "mamba.A_log";
  names.skip = "mamba.D";
}

/// Bamba's names, which Falcon H1 has as well.
constexpr void nameBamba(NamingTable &names) {
  names.finalNorm = "model.final_layernorm";
  names.ffnNorm = "pre_ff_layernorm";
  names.gate = "feed_forward.gate_proj";
  names.up = "feed_forward.up_proj";
  names.down = "feed_forward.down_proj";
  nameMamba(names);
}

/// The keys of Mamba 2 in hybrids.
inline constexpr KeyRule mambaKeys[] = {
    {"mamba_n_heads", &Hyperparameters::mambaHeads, ranges::heads, int64_t(128)},
    {"mamba_d_head", &Hyperparameters::mambaHeadDim, ranges::headDim, Unset()},
    {"mamba_n_groups", &Hyperparameters::mambaGroups, ranges::heads, int64_t(1)},
    {"mamba_d_state", &Hyperparameters::stateDim, ranges::headDim, int64_t(256)},
    {"mamba_d_conv", &Hyperparameters::convTaps, ranges::taps, int64_t(4)},
    {"mamba_expand", &Hyperparameters::mambaMultiple, ranges::multiplier, 2.0},
    {"mamba_conv_bias", &Hyperparameters::convBias, {}, true},
    {"mamba_proj_bias", &Hyperparameters::mambaBias, {}, false},
};

/// The names of Qwen's shared expert and its gate.
constexpr void nameSharedExpert(NamingTable &names) {
  names.sharedExpert = "mlp.shared_expert";
  names.sharedExpertGate = "mlp.shared_expert_gate";
}

/// The names of gated delta nets in layers that may have attention instead.
constexpr void nameDeltaNet(NamingTable &names) {
  names.conv = "linear_attn.conv1d";
  names.deltaQkv = "linear_attn.in_proj_qkv";
  names.deltaGate = "linear_attn.in_proj_z";
  names.deltaBeta = "linear_attn.in_proj_b";
  names.deltaStep = "linear_attn.in_proj_a";
  names.deltaNorm = "linear_attn.norm";
  names.deltaOut = "linear_attn.out_proj";
  names.timeStepBias = "linear_attn.dt_bias";
  names.rates = "linear_attn.A_log";
}

/// The keys of gated delta nets, and of the attention between them.
inline constexpr KeyRule deltaNetKeys[] = {
    {"linear_num_key_heads", &Hyperparameters::deltaKeyHeads, ranges::heads, int64_t(16)},
    {"linear_num_value_heads", &Hyperparameters::deltaValueHeads, ranges::heads, int64_t(32)},
    {"linear_key_head_dim", &Hyperparameters::deltaKeyDim, ranges::headDim, int64_t(128)},
    {"linear_value_head_dim", &Hyperparameters::deltaValueDim, ranges::headDim, int64_t(128)},
    {"linear_conv_kernel_dim", &Hyperparameters::convTaps, ranges::taps, int64_t(4)},
    {"full_attention_interval", &Hyperparameters::attentionInterval, ranges::layers, int64_t(4)},
    {"attention_bias", &Hyperparameters::attentionBias, {}, false},
    {"head_dim", &Hyperparameters::headDim, ranges::headDim, int64_t(256)},
    {"partial_rotary_factor", &Hyperparameters::partialRotary, ranges::share, Unset()},
};

/// The traits of Qwen's families with gated delta nets.
inline constexpr FamilyTraits deltaNetTraits = {.normRounding = NormRounding::AfterGain,
                                                .weightOffset = 1,
                                                .qkNorm = QkNorm::PerHead,
                                                .outputGate = true,
                                                .otherMixer = Mixer::DeltaNet,
                                                .sharedGate = true,
                                                .partialRotary = 0.25};

/// Time steps that a limit would change are not supported.
inline constexpr FixedKey timeStepLimit = {
    "time_step_limit", R"([[0, "Infinity"], [0, {"__float__": "Infinity"}], null])"};

/// As GPT-2 and what follows it: biases everywhere, and unless the config says otherwise inner rows
/// four times as wide as the others.
inline void deriveLikeGpt2(Hyperparameters &h) {
  h.attentionBias = h.mlpBias = true;
  h.inner = h.inner.value_or(4 * *h.hidden);
}

/// Sizes of Qwen's experts that GGUF files may lack, as llama.cpp has them.
inline llvm::Error deriveGgufExperts(const GgufKeys &, Hyperparameters &h) {
  h.expertInner = h.expertInner.value_or(std::max<int64_t>(1, *h.inner / *h.expertsPerToken));
  return llvm::Error::success();
}

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_FAMILIES_H
