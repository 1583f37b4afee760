#include "frontend/families/Families.h"
#include "frontend/families/Mamba.h"

#include "frontend/support/InputError.h"

namespace mica {

using H = Hyperparameters;

static llvm::Error checkPositions(const Hyperparameters &h, llvm::StringRef path) {
  if (!h.positionEmbedding || *h.positionEmbedding == "rope" || *h.positionEmbedding == "nope")
    return llvm::Error::success();
  return inputError(path,
                    "has \"position_embedding_type\": " + inQuotes(*h.positionEmbedding) +
                        ", only \"rope\" and \"nope\" are supported",
                    hints::otherModel);
}

/// A shared MLP in every layer, with or without experts.
static void deriveFfn(Hyperparameters &h) {
  h.usesRope = h.positionEmbedding == "rope";
  h.sparse = true;
  h.normalizeGate = true;
  h.expertInner = h.inner;
  h.inner = h.sharedInner;
}

static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
  names.gateUp = "shared_mlp.input_linear";
  names.gate = "shared_mlp.gate";
  names.up = "shared_mlp.up";
  names.down = "shared_mlp.output_linear";
  names.router = "block_sparse_moe.router.layer";
  names.expert = "block_sparse_moe";
  names.expertGate = "gate";
  names.expertUp = "up";
  names.expertDown = "output_linear";
  names.stackedGateUp = "input_linear";
  names.stackedDown = "output_linear";
  names.stackedSuffix = ".weight";
  names.gateUpInterleaved = false;
  names.sharedExpert = "shared_mlp";
  nameMamba(names);
});

// Granite 4: Granite with Mamba 2 in most layers, often without position embeddings, and with
// experts in addition to a shared one.
llvm::Expected<const Family *> chooseGraniteMoeHybrid(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"GraniteMoeHybridForCausalLM"};
  static constexpr KeyRule own[] = {
      {"attention_bias", &H::attentionBias, {}, false},
      {"embedding_multiplier", &H::embeddingMultiplier, ranges::multiplier, 1.0},
      {"residual_multiplier", &H::residualMultiplier, ranges::multiplier, 1.0},
      {"attention_multiplier", &H::scoreScale, ranges::multiplier, 1.0},
      {"logits_scaling", &H::logitDivisor, ranges::multiplier, 1.0},
      {"num_local_experts", &H::experts, ranges::maybeExperts, int64_t(8)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::maybeExperts, int64_t(2)},
      {"shared_intermediate_size", &H::sharedInner, ranges::width, int64_t(1024)},
      optionalKey("position_embedding_type", &H::positionEmbedding),
  };
  static constexpr FixedKey fixed[] = {{"hidden_act", R"(["silu", "swish"])"},
                                       {"normalization_function", R"(["rmsnorm"])"},
                                       timeStepLimit};
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"init_method", "only affects training"},
      {"mamba_chunk_size", "does not change results"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, mambaKeys, commonKeys()};
  static const Family family = {
      .name = "granitemoehybrid",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.otherMixer = Mixer::Mamba},
      .names = &names,
      .derive = deriveFfn,
      .check = checkPositions,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"attention.head_count_kv", &H::kvHeadsOfLayers, {0, ranges::heads.max}},
    {"embedding_scale", &H::embeddingMultiplier, ranges::multiplier, 1.0},
    {"residual_scale", &H::residualMultiplier, ranges::multiplier, 1.0},
    {"attention.scale", &H::scoreScale, ranges::multiplier, Unset()},
    {"logit_scale", &H::logitDivisor, ranges::multiplier, 1.0},
    // Where it is false, llama.cpp computes no rope.
    {"rope.scaling.finetuned", &H::usesRope, {}, true},
    {"expert_count", &H::experts, ranges::maybeExperts, int64_t(0)},
    {"expert_used_count", &H::expertsPerToken, ranges::maybeExperts, int64_t(0)},
    {"expert_shared_feed_forward_length", &H::sharedInner, ranges::width, Unset()},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::mambaKeys, gguf::sizeKeys,
                                                       gguf::decoderKeys, gguf::rmsNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.*.attn_q.bias"},
                                         {&H::convBias, "blk.*.ssm_conv1d.bias"}};

// Gate and up are a tensor each.
static const NamingTable *ggufNames(const GgufModel &) {
  static constexpr NamingTable parted = changed(names, [](NamingTable &names) {
    names.gateUp = names.stackedGateUp = names.stackedDown = "";
    names.expert = "block_sparse_moe.experts.*";
  });
  return &parted;
}

/// Without experts, the file's feed_forward_length is the size of the network for all tokens; with
/// experts, it is theirs.
static llvm::Error deriveGguf(const GgufKeys &keys, Hyperparameters &h) {
  h.positionEmbedding = *h.usesRope ? "rope" : "nope";
  if (*h.experts == 0)
    h.sharedInner = h.inner;
  if (!h.sharedInner)
    return keys.missingKey("expert_shared_feed_forward_length", "which granitehybrid needs");
  return llvm::Error::success();
}

constexpr GgufArchitecture ggufGraniteMoeHybrid = {
    .name = "granitehybrid",
    .keys = ggufKeys,
    .fixed = gguf::expertFixedKeys,
    .flags = ggufFlags,
    .pairing = Pairing::Interleaved,
    .names = ggufNames,
    .derive = deriveGguf,
};

} // namespace mica
