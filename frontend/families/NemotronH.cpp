#include "frontend/families/Families.h"
#include "frontend/families/Mamba.h"

namespace mica {

using H = Hyperparameters;

/// One group of experts is none. GGUF files have the size of all heads of Mamba.
static void deriveSizes(Hyperparameters &h) {
  h.sparse = true;
  if (h.mambaHeadDim)
    h.mambaInner = *h.mambaHeads * *h.mambaHeadDim;
  if (h.groups == 1)
    h.groups = h.topkGroup = std::nullopt;
}

// Each layer is one block: Mamba 2, attention without position embeddings, an MLP without gate, or
// experts without gate in addition to a shared one, which may read a latent of the stream.
llvm::Expected<const Family *> chooseNemotronH(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"NemotronHForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    nameBackbone(names);
    names.query = "mixer.q_proj";
    names.key = "mixer.k_proj";
    names.value = "mixer.v_proj";
    names.out = "mixer.o_proj";
    names.up = "mixer.up_proj";
    names.down = "mixer.down_proj";
    names.router = "mixer.gate";
    names.correctionBias = "mixer.gate.e_score_correction_bias";
    names.expert = "mixer.experts.*";
    names.sharedExpert = "mixer.shared_experts";
    names.expertsIn = "mixer.fc1_latent_proj";
    names.expertsOut = "mixer.fc2_latent_proj";
  });
  static constexpr KeyRule own[] = {
      optionalKey("layers_block_type", &H::layerTypes),
      {"hybrid_override_pattern", &H::layerPattern, {}, Unset()},
      optionalKey("num_hidden_layers", &H::layers, ranges::layers),
      {"hidden_size", &H::hidden, ranges::width, int64_t(4096)},
      {"intermediate_size", &H::inner, ranges::width, int64_t(21504)},
      {"vocab_size", &H::vocab, ranges::vocab, int64_t(131072)},
      {"max_position_embeddings", &H::maxPositions, ranges::positions, int64_t(4096)},
      {"num_attention_heads", &H::heads, ranges::heads, int64_t(32)},
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8), Null::Allowed},
      {"head_dim", &H::headDim, ranges::headDim, int64_t(128)},
      {"attention_head_dim", &H::headDim, ranges::headDim, Unset()}, // the older name
      {"mamba_num_heads", &H::mambaHeads, ranges::heads, int64_t(128)},
      {"mamba_head_dim", &H::mambaHeadDim, ranges::headDim, int64_t(64)},
      {"n_groups", &H::mambaGroups, ranges::heads, int64_t(8)},
      {"ssm_state_size", &H::stateDim, ranges::headDim, int64_t(128)},
      {"conv_kernel", &H::convTaps, ranges::taps, int64_t(4)},
      {"use_conv_bias", &H::convBias, {}, true},
      {"use_bias", &H::mambaBias, {}, false},
      {"mlp_bias", &H::mlpBias, {}, false},
      {"layer_norm_epsilon", &H::eps, ranges::eps, 1e-5},
      {"tie_word_embeddings", &H::tiedHead, {}, false},
      {"n_routed_experts", &H::experts, ranges::maybeExperts, int64_t(8)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(2)},
      {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(7688)},
      {"moe_shared_expert_intermediate_size", &H::sharedInner, ranges::width, int64_t(7688)},
      optionalKey("moe_latent_size", &H::expertWidth, ranges::width),
      {"routed_scaling_factor", &H::routedMultiplier, ranges::multiplier, 1.0},
      {"norm_topk_prob", &H::normalizeGate, {}, true},
      {"n_group", &H::groups, ranges::experts, int64_t(1)},
      {"topk_group", &H::topkGroup, ranges::experts, int64_t(1)},
  };
  static constexpr FixedKey fixed[] = {
      {"attention_bias", "[false]"},
      {"mamba_hidden_act", R"(["silu", "swish"])"},
      {"mamba_ssm_cache_dtype", R"(["float32"])"},
      {"mlp_hidden_act", R"(["relu2"])"},
      {"n_shared_experts", "[1]"},
      {"sliding_window", "[null]"},
      timeStepLimit,
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"chunk_size", "does not change results"},
      {"expand", "is overridden by mamba_num_heads"},
      {"hidden_dropout", "only affects training"},
      {"mamba_proj_bias", "is overridden by use_bias"},
      {"moe_shared_expert_overlap", "does not change results"},
      {"mtp_hybrid_override_pattern", reasons::laterTokens},
      {"mtp_layers_block_type", reasons::laterTokens},
      {"norm_eps", "is overridden by layer_norm_epsilon"},
      {"num_logits_to_keep", "selects outputs of Python code"},
      {"num_nextn_predict_layers", reasons::laterTokens},
      {"partial_rotary_factor", "is not read: attention has no positions"},
      {"rescale_prenorm_residual", "only affects training"},
      {"residual_in_fp32", "residuals are always f32"},
      {"rms_norm_eps", "is overridden by layer_norm_epsilon"},
      {"rope_theta", "is not read: attention has no positions"},
      {"time_step_floor", "only affects training"},
      {"time_step_max", "only affects training"},
      {"time_step_min", "is the minimum time step of prompts in transformers, but not of decode, "
                        "and only affects training in NVIDIA's code"},
      {"time_step_rank", "is overridden by mamba_num_heads"},
      {"use_mamba_kernels", reasons::implementation},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own};
  static const Family family = {
      .name = "nemotron_h",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.normRounding = NormRounding::AfterWeight,
                 .rope = false,
                 .otherMixer = Mixer::Mamba,
                 .isOneBlock = true,
                 .scoring = Scoring::Sigmoid,
                 .groupScoring = GroupScoring::BestTwo,
                 .correctionBias = true,
                 .gated = false,
                 .activation = Activation::Relu2},
      .names = &names,
      .derive = deriveSizes,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"attention.layer_norm_epsilon", &H::eps, ranges::eps},
    {"attention.layer_norm_rms_epsilon", &H::eps, ranges::eps, Unset()},
    {"attention.head_count_kv", &H::kvHeadsOfLayers, {0, ranges::heads.max}},
    {"attention.key_length", &H::headDim, ranges::headDim, Unset()},
    {"nextn_predict_layers", &H::numNextnPredictLayers, {0, 64}, int64_t(0)},
    {"expert_count", &H::experts, ranges::maybeExperts, int64_t(0)},
    {"expert_used_count", &H::expertsPerToken, ranges::maybeExperts, int64_t(0)},
    {"expert_feed_forward_length", &H::expertInner, ranges::width, Unset()},
    {"expert_shared_feed_forward_length", &H::sharedInner, ranges::width, Unset()},
    {"expert_group_count", &H::groups, ranges::experts, Unset()},
    {"expert_group_used_count", &H::topkGroup, ranges::experts, Unset()},
    {"expert_weights_norm", &H::normalizeGate, {}, false},
    {"expert_weights_scale", &H::routedMultiplier, ranges::multiplier, 1.0},
    {"moe_latent_size", &H::expertWidth, ranges::width, Unset()},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::mambaKeys, gguf::sizeKeys};
static constexpr FixedKey ggufFixed[] = {{"expert_gating_func", "[2]"}, // sigmoid
                                         {"expert_shared_count", "[1]"}};
static constexpr IgnoredKeyRow ggufIgnoredKeys[] = {
    {"feed_forward_length", reasons::used},
    {"rope.freq_base", "is not read: attention has no positions"},
};
static constexpr GgufFlag ggufFlags[] = {{&H::convBias, "blk.*.ssm_conv1d.bias"},
                                         {&H::mlpBias, "blk.*.ffn_up.bias"}};

/// A layer with a feed-forward size is a network, one with only key/value heads attention, and one
/// with neither Mamba.
static llvm::Error deriveGgufPattern(const GgufKeys &keys, Hyperparameters &h) {
  constexpr llvm::StringLiteral key = "feed_forward_length";
  const llvm::json::Value *value = keys.find(key);
  if (!value)
    return keys.missingKey(key, "which determines the types of its layers");
  auto inners = readIntegers(keys.path(), keys.named(key), *value, {0, ranges::width.max});
  if (!inners)
    return inners.takeError();
  if (llvm::Error error = subtractGgufNextnLayers(keys, h))
    return error;
  auto all = static_cast<size_t>(*h.layers + *h.numNextnPredictLayers);
  std::vector<int64_t> &kvHeads = h.kvHeadsOfLayers;
  const std::pair<std::vector<int64_t> *, llvm::StringRef> lists[] = {
      {&*inners, key}, {&kvHeads, "attention.head_count_kv"}};
  for (auto [sizes, name] : lists) {
    if (sizes->size() == 1)
      sizes->assign(all, sizes->front());
    if (sizes->size() != all)
      return keys.wrongValue(name, "a number for each of " + llvm::Twine(all) + " layers");
    sizes->resize(*h.layers);
  }
  h.layerPattern.emplace();
  for (auto [inner, heads] : llvm::zip_equal(*inners, kvHeads)) {
    h.layerPattern->push_back(inner != 0 ? (*h.experts != 0 ? 'E' : '-') : heads != 0 ? '*' : 'M');
    if (inner == 0)
      continue;
    if (h.inner.value_or(inner) != inner)
      return keys.wrongValue(key, "blocks of one size", hints::otherModel);
    h.inner = inner;
  }
  return llvm::Error::success();
}

static llvm::Error deriveGguf(const GgufKeys &keys, Hyperparameters &h) {
  if (llvm::Error error = deriveGgufPattern(keys, h))
    return error;
  if (*h.experts == 0)
    return llvm::Error::success();
  if (!h.expertInner)
    return keys.missingKey("expert_feed_forward_length", "which experts need");
  if (!h.sharedInner)
    return keys.missingKey("expert_shared_feed_forward_length", "which experts need");
  return checkGgufGroups(keys, h, /*isOpen=*/false);
}

constexpr GgufArchitecture ggufNemotronH = {
    .name = "nemotron_h",
    .sparseName = "nemotron_h_moe",
    .keys = ggufKeys,
    .fixed = ggufFixed,
    .ignoredKeys = ggufIgnoredKeys,
    .flags = ggufFlags,
    .derive = deriveGguf,
};

} // namespace mica
