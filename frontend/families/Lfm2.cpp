#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
  names.finalNorm = "model.embedding_norm";
  names.attentionNorm = "operator_norm";
  names.out = "self_attn.out_proj";
  names.queryNorm = "self_attn.q_layernorm";
  names.keyNorm = "self_attn.k_layernorm";
  names.convIn = "conv.in_proj";
  names.conv = "conv.conv";
  names.convOut = "conv.out_proj";
  names.ffnNorm = "ffn_norm";
  names.gate = "feed_forward.w1";
  names.up = "feed_forward.w3";
  names.down = "feed_forward.w2";
});

/// Two thirds of the value in the config, times a multiplier, rounded up; each product is
/// truncated.
static void deriveInner(Hyperparameters &h) {
  if (!h.adjustsInner.value_or(true))
    return;
  h.inner = 2 * *h.inner / 3;
  if (!h.innerMultiplier)
    return;
  auto scaled = static_cast<int64_t>(*h.innerMultiplier * static_cast<double>(*h.inner));
  h.inner = (scaled + *h.innerMultiple - 1) / *h.innerMultiple * *h.innerMultiple;
}

// The keys of both families. The common keys do not apply: their configurations rename some of
// them.
static constexpr KeyRule sharedKeys[] = {
    {"hidden_size", &H::hidden, ranges::width},
    {"num_hidden_layers", &H::layers, ranges::layers},
    {"num_attention_heads", &H::heads, ranges::heads},
    optionalKey("head_dim", &H::headDim, ranges::headDim),
    {"vocab_size", &H::vocab, ranges::vocab},
    {"rope_theta", &H::theta, ranges::theta, Unset()},
    optionalKey("rope_scaling", &H::ropeScaling),
    optionalKey("rope_parameters", &H::ropeParameters),
    optionalKey("layer_types", &H::layerTypes),
    {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8)},
    {"max_position_embeddings", &H::maxPositions, ranges::positions, int64_t(128000)},
    {"norm_eps", &H::eps, ranges::eps, 1e-5},
    {"tie_embedding", &H::tiedHead, {}, Unset()},
    {"tie_word_embeddings", &H::tiedHead, {}, true},
    {"conv_L_cache", &H::convTaps, ranges::taps, int64_t(3)},
    {"conv_bias", &H::convBias, {}, false},
};

// Gated short convolutions and some attention layers; q/k norms per head.
llvm::Expected<const Family *> chooseLfm2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Lfm2ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"block_ff_dim", &H::inner, ranges::width, Unset()},
      {"intermediate_size", &H::inner, ranges::width, int64_t(12288)},
      {"block_auto_adjust_ff_dim", &H::adjustsInner, {}, true},
      {"block_ffn_dim_multiplier", &H::innerMultiplier, ranges::multiplier, 1.0, Null::Allowed},
      {"block_multiple_of", &H::innerMultiple, ranges::width, int64_t(256)},
      optionalKey("full_attn_idxs", &H::attentionLayers),
  };
  static constexpr FixedKey fixed[] = {
      {"block_use_swiglu", "[true]"},
      {"use_pos_enc", "[true]"},
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"block_dim", "is overridden by hidden_size"},
      {"block_mlp_init_scale", "only affects training"},
      {"block_norm_eps", "is overridden by norm_eps"},
      {"block_out_init_scale", "only affects training"},
      {"block_use_xavier_init", "only affects training"},
      {"conv_dim", "is overridden by hidden_size"},
      {"conv_dim_out", "is overridden by hidden_size"},
      {"conv_use_xavier_init", "only affects training"},
      {"num_heads", "is overridden by num_attention_heads"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, sharedKeys};
  static const Family family = {
      .name = "lfm2",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.qkNorm = QkNorm::PerHead, .otherMixer = Mixer::ShortConv, .defaultTheta = 1e6},
      .names = &names,
      .derive = deriveInner,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

// LFM2 with experts after the first layers, selected by sigmoids with a correction bias.
llvm::Expected<const Family *> chooseLfm2Moe(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Lfm2MoeForCausalLM"};
  static constexpr NamingTable namesOfMoe = changed(names, [](NamingTable &names) {
    names.router = "feed_forward.gate";
    names.correctionBias = "feed_forward.expert_bias";
    names.expert = "feed_forward.experts.*";
    names.expertGate = "w1";
    names.expertUp = "w3";
    names.expertDown = "w2";
  });
  static constexpr KeyRule own[] = {
      {"intermediate_size", &H::inner, ranges::width, int64_t(7168)},
      {"num_experts", &H::experts, ranges::experts, int64_t(32)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(4)},
      {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(1792)},
      {"num_dense_layers", &H::firstDense, {0, 4096}, int64_t(2)},
      {"norm_topk_prob", &H::normalizeGate, {}, true},
      {"routed_scaling_factor", &H::routedMultiplier, ranges::multiplier, 1.0},
      {"use_expert_bias", &H::correctsChoice, {}, true},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, sharedKeys};
  static const Family family = {
      .name = "lfm2_moe",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.qkNorm = QkNorm::PerHead,
                 .otherMixer = Mixer::ShortConv,
                 .scoring = Scoring::Sigmoid,
                 .correctionBias = true,
                 .normalizeEps = 1e-6,
                 .defaultTheta = 1e6},
      .names = &namesOfMoe,
      .derive = [](Hyperparameters &h) { h.sparse = true; },
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"attention.head_count_kv", &H::kvHeadsOfLayers, {0, ranges::heads.max}},
    {"shortconv.l_cache", &H::convTaps, ranges::taps},
    gguf::thetaKey,
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
// Despite its name, this norm precedes lm_head.
static constexpr GgufModule ggufModelModules[] = {{"token_embd_norm", &NamingTable::finalNorm}};

/// GGUF files contain the final inner size.
static llvm::Error deriveGguf(const GgufKeys &, Hyperparameters &h) {
  h.adjustsInner = false;
  return llvm::Error::success();
}

constexpr GgufArchitecture ggufLfm2 = {
    .name = "lfm2", .keys = ggufKeys, .modelModules = ggufModelModules, .derive = deriveGguf};

// The weights of experts are always divided by their sum.
static constexpr KeyRule ggufOwnOfMoe[] = {
    {"leading_dense_block_count", &H::firstDense, {0, 4096}},
    {"expert_count", &H::experts, ranges::experts},
    {"expert_used_count", &H::expertsPerToken, ranges::experts},
    {"expert_feed_forward_length", &H::expertInner, ranges::width},
    {"expert_weights_scale", &H::routedMultiplier, ranges::multiplier, 1.0},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeysOfMoe[] = {ggufOwnOfMoe, ggufOwn, gguf::sizeKeys,
                                                            gguf::decoderKeys, gguf::rmsNormKeys};
static constexpr FixedKey ggufFixedOfMoe[] = {{"expert_gating_func", "[2]"}, // sigmoid
                                              {"expert_weights_norm", "[true]"}};

constexpr GgufArchitecture ggufLfm2Moe = {
    .name = "lfm2moe",
    .keys = ggufKeysOfMoe,
    .fixed = ggufFixedOfMoe,
    .modelModules = ggufModelModules,
    .derive = [](const GgufKeys &, Hyperparameters &h) -> llvm::Error {
      h.normalizeGate = true;
      return llvm::Error::success();
    },
};

} // namespace mica
