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

/// Two thirds of what the config says, times a multiplier, rounded up; each product is truncated.
static void deriveInner(Hyperparameters &h) {
  if (!h.adjustsInner.value_or(true))
    return;
  h.inner = 2 * *h.inner / 3;
  if (!h.innerMultiplier)
    return;
  auto scaled = static_cast<int64_t>(*h.innerMultiplier * static_cast<double>(*h.inner));
  h.inner = (scaled + *h.innerMultiple - 1) / *h.innerMultiple * *h.innerMultiple;
}

// Gated short convolutions and some attention layers; q/k norms per head.
llvm::Expected<const Family *> chooseLfm2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Lfm2ForCausalLM"};
  // No other keys: its class has names of its own for some of the common ones.
  static constexpr KeyRule own[] = {
      {"hidden_size", &H::hidden, ranges::width},
      {"num_hidden_layers", &H::layers, ranges::layers},
      {"num_attention_heads", &H::heads, ranges::heads},
      optionalKey("head_dim", &H::headDim, ranges::headDim),
      {"vocab_size", &H::vocab, ranges::vocab},
      {"rope_theta", &H::theta, ranges::theta, Unset()},
      optionalKey("rope_scaling", &H::ropeScaling),
      optionalKey("rope_parameters", &H::ropeParameters),
      optionalKey("layer_types", &H::layerTypes),
      {"block_ff_dim", &H::inner, ranges::width, Unset()},
      {"intermediate_size", &H::inner, ranges::width, int64_t(12288)},
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8)},
      {"max_position_embeddings", &H::maxPositions, ranges::positions, int64_t(128000)},
      {"norm_eps", &H::eps, ranges::eps, 1e-5},
      {"tie_embedding", &H::tiedHead, {}, Unset()},
      {"tie_word_embeddings", &H::tiedHead, {}, true},
      {"conv_L_cache", &H::convTaps, {2, 32}, int64_t(3)},
      {"conv_bias", &H::convBias, {}, false},
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
  static const llvm::ArrayRef<KeyRule> keys[] = {own};
  static const Family family = {
      .name = "lfm2",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.qkNorm = QkNorm::PerHead, .convLayers = true, .defaultTheta = 1e6},
      .names = &names,
      .derive = deriveInner,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

} // namespace mica
