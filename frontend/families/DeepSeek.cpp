#include "frontend/families/Families.h"
#include "frontend/support/InputError.h"

namespace mica {

using H = Hyperparameters;

// Keys shared by the three generations.
static constexpr KeyRule expertKeys[] = {
    {"n_routed_experts", &H::experts, ranges::experts, int64_t(64)},
    {"n_shared_experts", &H::sharedExperts, {0, 64}, int64_t(2), Null::Allowed},
    {"num_experts_per_tok", &H::expertsPerToken, ranges::experts},
    {"moe_intermediate_size", &H::expertInner, ranges::width},
    {"first_k_dense_replace", &H::firstDense, {0, 4096}, int64_t(0)},
    {"attention_bias", &H::attentionBias, {}, false},
};
static constexpr KeyRule latentKeys[] = {
    {"kv_lora_rank", &H::latentRank, ranges::width, int64_t(512)},
    {"q_lora_rank", &H::queryRank, ranges::width, int64_t(1536), Null::Allowed},
    {"qk_nope_head_dim", &H::qkNopeHeadDim, ranges::headDim, int64_t(128)},
    {"qk_rope_head_dim", &H::qkRopeHeadDim, ranges::headDim, int64_t(64)},
    {"v_head_dim", &H::valueDim, ranges::headDim, int64_t(128)},
    optionalKey("n_group", &H::groups, ranges::experts),
    optionalKey("topk_group", &H::topkGroup, ranges::experts),
};

static constexpr IgnoredKeyRow latentIgnoredKeys[] = {{"qk_head_dim", "sum of its two parts"}};

static constexpr NamingTable namesOfFirst = changed(
    transformersNames, [](NamingTable &names) { names.sharedExpert = "mlp.shared_experts"; });

/// All shared experts form one MLP.
static void deriveExperts(Hyperparameters &h) {
  h.sparse = true;
  if (int64_t shared = h.sharedExperts.value_or(0))
    h.sharedInner = shared * *h.expertInner;
}

static void deriveLatent(Hyperparameters &h) {
  deriveExperts(h);
  h.headDim = *h.qkNopeHeadDim + *h.qkRopeHeadDim;
  h.kvHeads = h.heads;
}

/// Rejects a number of key/value heads other than the number of heads: keys and values are computed
/// for every head, and transformers fails with another number.
static llvm::Error checkLatent(const Hyperparameters &h, llvm::StringRef path) {
  if (h.kvHeads.value_or(*h.heads) == *h.heads)
    return llvm::Error::success();
  return inputError(path,
                    "has \"num_key_value_heads\": " + llvm::Twine(*h.kvHeads) +
                        ", but a latent makes keys and values for all " + llvm::Twine(*h.heads) +
                        " heads",
                    "set it to " + llvm::Twine(*h.heads));
}

// Leading dense layers, then many small experts and shared experts, which form one MLP.
llvm::Expected<const Family *> chooseDeepSeek(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"DeepseekForCausalLM"};
  static constexpr KeyRule own[] = {
      {"n_routed_experts", &H::experts, ranges::experts},
      {"n_shared_experts", &H::sharedExperts, {0, 64}, Unset(), Null::Allowed},
      {"norm_topk_prob", &H::normalizeGate, {}, false},
  };
  static constexpr FixedKey fixed[] = {
      {"scoring_func", R"(["softmax"])"}, {"moe_layer_freq", "[1]"}, {"pretraining_tp", "[1]"}};
  static const llvm::ArrayRef<KeyRule> keys[] = {own, expertKeys, commonKeys()};
  static const Family family = {
      .name = "deepseek",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.normalizesSingleExpert = false},
      .names = &namesOfFirst,
      .derive = deriveExperts,
  };
  return &family;
}

/// Rejects other selection methods, such as the next generation's noaux_tc, with which transformers
/// fails.
static llvm::Error checkV2(const Hyperparameters &h, llvm::StringRef path) {
  if (h.choice && h.choice != "greedy" && h.choice != "group_limited_greedy")
    return inputError(path,
                      "has \"topk_method\": " + inQuotes(*h.choice) +
                          ", expected \"greedy\" or \"group_limited_greedy\"",
                      hints::correct);
  return checkLatent(h, path);
}

// Latent attention (MLA): keys, values and usually queries are projected from latents. Experts are
// selected within the best groups.
llvm::Expected<const Family *> chooseDeepSeekV2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"DeepseekV2ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"routed_scaling_factor", &H::routedMultiplier, ranges::multiplier, 1.0},
      {"topk_method", &H::choice, {}, Unset()},
      {"mlp_bias", &H::mlpBias, {}, false},
      optionalKey("head_dim", &H::qkRopeHeadDim, ranges::headDim),
  };
  static constexpr FixedKey fixed[] = {
      {"scoring_func", R"(["softmax"])"}, {"moe_layer_freq", "[1]"}, {"pretraining_tp", "[1]"}};
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      latentIgnoredKeys[0],
      {"norm_topk_prob", "is not read by transformers: the weights of experts are not scaled"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, expertKeys, latentKeys, commonKeys()};
  static const Family family = {
      .name = "deepseek_v2",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.pairing = Pairing::Interleaved, .yarnScalesScores = true},
      .names = &latentNames,
      .derive =
          [](Hyperparameters &h) {
            deriveLatent(h);
            if (h.choice != "group_limited_greedy")
              h.groups.reset();
          },
      .check = checkV2,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

// DeepSeek V2 with a sigmoid router, whose selection uses e_score_correction_bias.
llvm::Expected<const Family *> chooseDeepSeekV3(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"DeepseekV3ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"n_routed_experts", &H::experts, ranges::experts, int64_t(256)},
      {"n_shared_experts", &H::sharedExperts, {0, 64}, int64_t(1), Null::Allowed},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(8)},
      {"first_k_dense_replace", &H::firstDense, {0, 4096}, int64_t(3)},
      {"n_group", &H::groups, ranges::experts, int64_t(8)},
      {"topk_group", &H::topkGroup, ranges::experts, int64_t(4)},
      {"norm_topk_prob", &H::normalizeGate, {}, true},
      {"routed_scaling_factor", &H::routedMultiplier, ranges::multiplier, 2.5},
      {"rope_interleave", &H::interleaved, {}, true},
      // Additional layers for multi-token prediction, which do not affect logits.
      optionalKey("num_nextn_predict_layers", &H::numNextnPredictLayers, {0, 64}),
      optionalKey("num_mtp_layers", &H::numNextnPredictLayers, {0, 64}),
      optionalKey("head_dim", &H::qkRopeHeadDim, ranges::headDim),
  };
  static constexpr FixedKey fixed[] = {{"scoring_func", R"(["sigmoid"])"},
                                       {"topk_method", R"(["noaux_tc"])"},
                                       {"moe_layer_freq", "[1]"},
                                       {"pretraining_tp", "[1]"}};
  static const llvm::ArrayRef<KeyRule> keys[] = {own, expertKeys, latentKeys, commonKeys()};
  static const Family family = {
      .name = "deepseek_v3",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.scoring = Scoring::Sigmoid,
                 .groupScoring = GroupScoring::BestTwo,
                 .correctionBias = true,
                 .yarnScalesScores = true},
      .names = &latentNames,
      .derive = deriveLatent,
      .check = checkLatent,
      .ignoredKeys = latentIgnoredKeys,
  };
  return &family;
}

static constexpr KeyRule ggufExpertKeys[] = {
    {"leading_dense_block_count", &H::firstDense, {0, 4096}},
    {"expert_count", &H::experts, ranges::experts},
    {"expert_used_count", &H::expertsPerToken, ranges::experts},
    {"expert_shared_count", &H::sharedExperts, {0, 64}},
    {"expert_feed_forward_length", &H::expertInner, ranges::width},
};

// The rows of q and k are reordered as for llama; experts are scored by softmax.
static constexpr KeyRule ggufOwnOfFirst[] = {
    {"expert_weights_norm", &H::normalizeGate, {}, false},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeysOfFirst[] = {
    ggufOwnOfFirst, ggufExpertKeys, gguf::sizeKeys, gguf::decoderKeys, gguf::rmsNormKeys};
static constexpr FixedKey ggufFixedOfFirst[] = {{"expert_gating_func", "[1]"},
                                                {"expert_weights_scale", "[0, 1]"}};
static constexpr GgufFlag ggufFlagsOfFirst[] = {{&H::attentionBias, "blk.0.attn_q.bias"}};

constexpr GgufArchitecture ggufDeepSeek = {
    .name = "deepseek",
    .keys = ggufKeysOfFirst,
    .fixed = ggufFixedOfFirst,
    .flags = ggufFlagsOfFirst,
    .pairing = Pairing::Interleaved,
};

// The second and the third generation have the same architecture name. They are distinguished by
// the scoring of experts, which is 2 (sigmoid) for the third.
static constexpr KeyRule ggufLatentKeys[] = {
    {"attention.q_lora_rank", &H::queryRank, ranges::width, Unset()},
    {"attention.kv_lora_rank", &H::latentRank, ranges::width},
    {"rope.dimension_count", &H::qkRopeHeadDim, ranges::headDim},
    {"expert_group_count", &H::groups, ranges::experts, Unset()},
    {"expert_group_used_count", &H::topkGroup, ranges::experts, Unset()},
    {"expert_weights_scale", &H::routedMultiplier, ranges::multiplier},
    {"feed_forward_length", &H::inner, ranges::width},
    {"rope.freq_base", &H::theta, ranges::theta, 10000.0},
};
static constexpr IgnoredKeyRow ggufLatentIgnoredKeys[] = {
    {"attention.head_count_kv", "heads share the latent that is cached"},
    {"attention.key_length_mla", reasons::used},
    {"attention.value_length_mla", reasons::used},
};
static constexpr GgufFlag ggufLatentFlags[] = {{&H::attentionBias, "blk.0.attn_kv_a_mqa.bias"}};
// The stored value is a tenth of mscale_all_dim. It is used for both parameters, so that it cancels
// out in rope. Without it, llama.cpp scales scores and rope, the original model only rope.
static constexpr GgufRopeKey ggufLogMultiplierAs(llvm::StringLiteral parameter) {
  return {.name = "rope.scaling.yarn_log_multiplier",
          .parameter = parameter,
          .types = "yarn",
          .requiredBy = "yarn",
          .mayBeUnused = true,
          .multiplier = 10};
}
static constexpr GgufRopeKey ggufLatentRopeKeys[] = {ggufLogMultiplierAs("mscale"),
                                                     ggufLogMultiplierAs("mscale_all_dim")};

/// The size of an expanded head. Newer files store it under `newer`; their `older` key is the size
/// of heads that read the latent directly.
static llvm::Expected<int64_t> ggufHeadSize(const GgufKeys &keys, llvm::StringRef newer,
                                            llvm::StringRef older) {
  llvm::StringRef key = keys.find(newer) ? newer : older;
  const llvm::json::Value *value = keys.find(key);
  if (!value)
    return keys.missingKey(key, "which deepseek2 needs");
  return readInteger(keys.path(), keys.named(key), *value, ranges::headDim);
}

static llvm::Error deriveGgufLatent(const GgufKeys &keys, Hyperparameters &h) {
  auto keySize = ggufHeadSize(keys, "attention.key_length_mla", "attention.key_length");
  if (!keySize)
    return keySize.takeError();
  auto valueSize = ggufHeadSize(keys, "attention.value_length_mla", "attention.value_length");
  if (!valueSize)
    return valueSize.takeError();
  h.qkNopeHeadDim = *keySize - *h.qkRopeHeadDim;
  h.valueDim = *valueSize;
  if (static_cast<double>(*h.qkNopeHeadDim) < ranges::headDim.min)
    return inputError(keys.path(),
                      "has heads of " + llvm::Twine(*keySize) + " elements and " +
                          inQuotes(keys.named("rope.dimension_count")) + ": " +
                          llvm::Twine(*h.qkRopeHeadDim) + ", which leaves no elements without rope",
                      hints::fetch);
  return llvm::Error::success();
}

/// Newer files store the projections of keys and of values as two tensors.
static const NamingTable *ggufLatentNames(const GgufModel &model) {
  static constexpr NamingTable heads = changed(latentNames, [](NamingTable &names) {
    names.latentUpKeys = "self_attn.k_b_proj";
    names.latentUpValues = "self_attn.v_b_proj";
  });
  bool hasHeads =
      model.findTensor("blk.0.attn_k_b.weight") && !model.findTensor("blk.0.attn_kv_b.weight");
  return hasHeads ? &heads : &latentNames;
}

static llvm::Error deriveGgufV2(const GgufKeys &keys, Hyperparameters &h) {
  // Among the models of the first converters, only those with up to 64 softmax-scored experts are
  // known to have no groups.
  constexpr int64_t maxExpertsWithoutGroups = 64;
  h.choice = h.groups.value_or(1) > 1 ? "group_limited_greedy" : "greedy";
  if (llvm::Error error = checkGgufGroups(keys, h, *h.experts > maxExpertsWithoutGroups))
    return error;
  return deriveGgufLatent(keys, h);
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeysOfV2[] = {ggufLatentKeys, ggufExpertKeys,
                                                           gguf::sizeKeys, gguf::rmsNormKeys};
// llama.cpp divides these weights by their sum, transformers does not.
static constexpr FixedKey ggufFixedOfV2[] = {{"expert_gating_func", "[0, 1]"},
                                             {"expert_weights_norm", "[false]"}};

constexpr GgufArchitecture ggufDeepSeekV2 = {
    .name = "deepseek2",
    .keys = ggufKeysOfV2,
    .fixed = ggufFixedOfV2,
    .ignoredKeys = ggufLatentIgnoredKeys,
    .flags = ggufLatentFlags,
    .ropeKeys = ggufLatentRopeKeys,
    .names = ggufLatentNames,
    .derive = deriveGgufV2,
};

static llvm::Error deriveGgufV3(const GgufKeys &keys, Hyperparameters &h) {
  if (llvm::Error error = checkGgufGroups(keys, h, /*isOpen=*/true))
    return error;
  return deriveGgufLatent(keys, h);
}

// Converters only write it if it is true.
static constexpr KeyRule ggufOwnOfV3[] = {{"expert_weights_norm", &H::normalizeGate, {}, false}};
static constexpr llvm::ArrayRef<KeyRule> ggufKeysOfV3[] = {
    ggufOwnOfV3, ggufLatentKeys, ggufExpertKeys, gguf::sizeKeys, gguf::rmsNormKeys};
static constexpr FixedKey ggufFixedOfV3[] = {{"expert_gating_func", "[2]"}};

constexpr GgufArchitecture ggufDeepSeekV3 = {
    .name = "deepseek2",
    .keys = ggufKeysOfV3,
    .fixed = ggufFixedOfV3,
    .ignoredKeys = ggufLatentIgnoredKeys,
    .flags = ggufLatentFlags,
    .ropeKeys = ggufLatentRopeKeys,
    .pairing = Pairing::Interleaved,
    .matches =
        [](const GgufKeys &keys) {
          const llvm::json::Value *scoring = keys.find("expert_gating_func");
          return scoring && *scoring == llvm::json::Value(2);
        },
    .names = ggufLatentNames,
    .derive = deriveGgufV3,
};

} // namespace mica
