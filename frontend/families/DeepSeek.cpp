#include "frontend/families/Families.h"
#include "frontend/support/InputError.h"

namespace mica {

using H = Hyperparameters;

// What the three generations have in common.
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
    {"qk_nope_head_dim", &H::plainDim, ranges::headDim, int64_t(128)},
    {"qk_rope_head_dim", &H::turnedDim, ranges::headDim, int64_t(64)},
    {"v_head_dim", &H::valueDim, ranges::headDim, int64_t(128)},
    optionalKey("n_group", &H::groups, ranges::experts),
    optionalKey("topk_group", &H::keptGroups, ranges::experts),
};

static constexpr UnreadKey latentUnread[] = {{"qk_head_dim", "is the sum of its two parts"}};

static constexpr NamingTable namesOfFirst = changed(
    transformersNames, [](NamingTable &names) { names.sharedExpert = "mlp.shared_experts"; });

/// One network computes all shared experts.
static void deriveExperts(Hyperparameters &h) {
  h.sparse = true;
  if (int64_t shared = h.sharedExperts.value_or(0))
    h.sharedInner = shared * *h.expertInner;
}

static void deriveLatent(Hyperparameters &h) {
  deriveExperts(h);
  h.headDim = *h.plainDim + *h.turnedDim;
  h.kvHeads = h.heads;
}

/// Keys and values are made for every head, whatever their number is said to be; with another
/// number transformers' code fails.
static llvm::Error checkLatent(const Hyperparameters &h, llvm::StringRef path) {
  if (h.kvHeads.value_or(*h.heads) == *h.heads)
    return llvm::Error::success();
  return inputError(path,
                    "has \"num_key_value_heads\": " + llvm::Twine(*h.kvHeads) +
                        ", but a latent makes keys and values for all " + llvm::Twine(*h.heads) +
                        " heads",
                    "set it to " + llvm::Twine(*h.heads));
}

// The first layers have no experts, the others many small ones, and some that are always on, which
// one network computes.
llvm::Expected<const Family *> chooseDeepSeek(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"DeepseekForCausalLM"};
  static constexpr KeyRule own[] = {
      {"n_routed_experts", &H::experts, ranges::experts},
      {"n_shared_experts", &H::sharedExperts, {0, 64}, Unset(), Null::Allowed},
      {"norm_topk_prob", &H::normaliseGate, {}, false},
  };
  static constexpr FixedKey fixed[] = {
      {"scoring_func", R"(["softmax"])"}, {"moe_layer_freq", "[1]"}, {"pretraining_tp", "[1]"}};
  static const llvm::ArrayRef<KeyRule> keys[] = {own, expertKeys, commonKeys()};
  static const Family family = {
      .name = "deepseek",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.normalisesSingleExpert = false},
      .names = &namesOfFirst,
      .derive = deriveExperts,
  };
  return &family;
}

/// No other method is computed in this generation: transformers fails with one, such as the next
/// generation's noaux_tc.
static llvm::Error checkV2(const Hyperparameters &h, llvm::StringRef path) {
  if (h.choice && h.choice != "greedy" && h.choice != "group_limited_greedy")
    return inputError(path,
                      "has \"topk_method\": " + inQuotes(*h.choice) +
                          ", expected \"greedy\" or \"group_limited_greedy\"",
                      remedy::correct);
  return checkLatent(h, path);
}

// Keys and values, and mostly queries, are made of latents; experts are chosen within the best
// groups.
llvm::Expected<const Family *> chooseDeepSeekV2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"DeepseekV2ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"routed_scaling_factor", &H::routedMultiplier, ranges::multiplier, 1.0},
      {"topk_method", &H::choice, {}, Unset()},
      {"mlp_bias", &H::mlpBias, {}, false},
      optionalKey("head_dim", &H::turnedDim, ranges::headDim),
  };
  static constexpr FixedKey fixed[] = {
      {"scoring_func", R"(["softmax"])"}, {"moe_layer_freq", "[1]"}, {"pretraining_tp", "[1]"}};
  static constexpr UnreadKey unread[] = {
      latentUnread[0],
      {"norm_topk_prob", "is read nowhere by transformers: weights of experts stay as they are"},
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
      .unread = unread,
  };
  return &family;
}

// Experts are scored one by one, and chosen by their scores with a correction.
llvm::Expected<const Family *> chooseDeepSeekV3(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"DeepseekV3ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"n_routed_experts", &H::experts, ranges::experts, int64_t(256)},
      {"n_shared_experts", &H::sharedExperts, {0, 64}, int64_t(1), Null::Allowed},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(8)},
      {"first_k_dense_replace", &H::firstDense, {0, 4096}, int64_t(3)},
      {"n_group", &H::groups, ranges::experts, int64_t(8)},
      {"topk_group", &H::keptGroups, ranges::experts, int64_t(4)},
      {"norm_topk_prob", &H::normaliseGate, {}, true},
      {"routed_scaling_factor", &H::routedMultiplier, ranges::multiplier, 2.5},
      {"rope_interleave", &H::interleaved, {}, true},
      // Layers behind the last one, which predict further tokens and no logits.
      optionalKey("num_nextn_predict_layers", &H::furtherLayers, {0, 64}),
      optionalKey("num_mtp_layers", &H::furtherLayers, {0, 64}),
      optionalKey("head_dim", &H::turnedDim, ranges::headDim),
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
                 .correction = true,
                 .yarnScalesScores = true},
      .names = &latentNames,
      .derive = deriveLatent,
      .check = checkLatent,
      .unread = latentUnread,
  };
  return &family;
}

} // namespace mica
