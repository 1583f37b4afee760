#include "frontend/families/Families.h"

#include "frontend/support/InputError.h"

namespace mica {

using H = Hyperparameters;

static llvm::Error checkPositions(const Hyperparameters &h, llvm::StringRef path) {
  if (!h.positionEmbedding || *h.positionEmbedding == "rope" || *h.positionEmbedding == "nope")
    return llvm::Error::success();
  return inputError(path,
                    "has the position_embedding_type " + inQuotes(*h.positionEmbedding) +
                        ", only rope and nope are supported",
                    hints::otherModel);
}

/// A shared network in every layer, and experts beside it or none.
static void deriveFfn(Hyperparameters &h) {
  h.usesRope = h.positionEmbedding == "rope";
  h.sparse = true;
  h.normalizeGate = true;
  h.expertInner = h.inner;
  h.inner = h.sharedInner;
}

// Granite 4: Granite with Mamba 2 in most layers, often without positions, and with experts beside
// a shared one.
llvm::Expected<const Family *> chooseGraniteMoeHybrid(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"GraniteMoeHybridForCausalLM"};
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
    names.stackedInTurn = false;
    names.sharedExpert = "shared_mlp";
    nameMamba(names);
  });
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

} // namespace mica
