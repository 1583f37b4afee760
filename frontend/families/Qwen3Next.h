//===- Qwen3Next.h - gated delta nets in Qwen's families --------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_QWEN3NEXT_H
#define MICA_FRONTEND_FAMILIES_QWEN3NEXT_H

#include "frontend/families/CommonKeys.h"
#include "frontend/families/GgufArchitecture.h"

namespace mica {

inline constexpr MtpKey qwenMtpKeys[] = {{"mtp_num_hidden_layers", "1"},
                                         {"mtp_use_dedicated_embeddings", "false"}};

inline constexpr MtpModules qwenMtpModules = {
    .prefix = "mtp.",
    .layers = "mtp.layers",
    .combine = "mtp.fc",
    .embeddingNorm = "mtp.pre_fc_norm_embedding",
    .hiddenNorm = "mtp.pre_fc_norm_hidden",
    .finalNorm = "mtp.norm",
    .keys = qwenMtpKeys,
};

/// The names of gated delta nets in layers that may have attention instead, and of the multi-token
/// prediction head.
constexpr void nameDeltaNet(NamingTable &names) {
  names.conv = "linear_attn.conv1d";
  names.deltaQkv = "linear_attn.in_proj_qkv";
  names.deltaGate = "linear_attn.in_proj_z";
  names.deltaBeta = "linear_attn.in_proj_b";
  names.deltaAlpha = "linear_attn.in_proj_a";
  names.deltaNorm = "linear_attn.norm";
  names.deltaOut = "linear_attn.out_proj";
  names.dtBias = "linear_attn.dt_bias";
  names.aLog = "linear_attn.A_log";
  names.mtp = &qwenMtpModules;
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
inline constexpr FamilyTraits deltaNetTraits = {.normRounding = NormRounding::AfterWeight,
                                                .weightOffset = 1,
                                                .qkNorm = QkNorm::PerHead,
                                                .outputGate = true,
                                                .otherMixer = Mixer::DeltaNet,
                                                .sharedGate = true,
                                                .partialRotary = 0.25};

/// The modules of gated delta nets in GGUF files. The norm before the feed-forward network is named
/// post_attention_norm there.
inline constexpr GgufModule ggufDeltaNetModules[] = {
    {"post_attention_norm", &NamingTable::ffnNorm},
    {"attn_qkv", &NamingTable::deltaQkv},
    {"attn_gate", &NamingTable::deltaGate},
    {"ssm_in", &NamingTable::deltaQkvz},
    {"ssm_beta", &NamingTable::deltaBeta},
    {"ssm_alpha", &NamingTable::deltaAlpha},
    {"ssm_ba", &NamingTable::deltaBa},
    {"ssm_norm", &NamingTable::deltaNorm},
    {"ssm_out", &NamingTable::deltaOut},
};

/// The keys used in addition to gguf::deltaNetKeys.
inline constexpr IgnoredKeyRow ggufDeltaNetUsedKeys[] = {
    {"attention.recurrent_layers", reasons::used},
    {"rope.dimension_sections", reasons::used},
    {"ssm.inner_size", reasons::used},
};

inline constexpr FixedKey ggufDeltaNetFixedKeys[] = {
    {"expert_gating_func", "[1]"}, // softmax
    {"expert_shared_count", "[0, 1]"},
    {"expert_weights_norm", "[true]"},
    {"expert_weights_scale", "[0, 1]"},
};

/// Derives which layers are gated delta nets, and the size of their value heads.
llvm::Error deriveGgufDeltaNet(const GgufKeys &keys, Hyperparameters &h);

/// The same for Qwen's models with experts, whose weights llama.cpp always divides by their sum.
llvm::Error deriveGgufDeltaNetExperts(const GgufKeys &keys, Hyperparameters &h);

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_QWEN3NEXT_H
