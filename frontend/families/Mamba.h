//===- Mamba.h - Mamba 2 in several families --------------------*- C++ -*-===//
#ifndef MICA_FRONTEND_FAMILIES_MAMBA_H
#define MICA_FRONTEND_FAMILIES_MAMBA_H

#include "frontend/families/Family.h"

namespace mica {

/// The names of Mamba 2 in layers that may have attention instead.
constexpr void nameMamba(NamingTable &names) {
  names.conv = "mamba.conv1d";
  names.mambaIn = "mamba.in_proj";
  names.mambaNorm = "mamba.norm";
  names.mambaOut = "mamba.out_proj";
  names.dtBias = "mamba.dt_bias";
  names.aLog = "mamba.A_log";
  names.skip = "mamba.D";
}

/// The names of the original code of Mamba 2, also used by Nemotron-H.
constexpr void nameBackbone(NamingTable &names) {
  names.embedding = "backbone.embeddings";
  names.layers = "backbone.layers";
  names.finalNorm = "backbone.norm_f";
  names.attentionNorm = "norm";
  names.conv = "mixer.conv1d";
  names.mambaIn = "mixer.in_proj";
  names.mambaNorm = "mixer.norm";
  names.mambaOut = "mixer.out_proj";
  names.dtBias = "mixer.dt_bias";
  names.aLog = "mixer.A_log";
  names.skip = "mixer.D";
}

/// Bamba's names, also used by Falcon H1.
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

/// Limits of time steps are not supported.
inline constexpr FixedKey timeStepLimit = {
    "time_step_limit", R"([[0, "Infinity"], [0, {"__float__": "Infinity"}], null])"};

} // namespace mica

#endif // MICA_FRONTEND_FAMILIES_MAMBA_H
