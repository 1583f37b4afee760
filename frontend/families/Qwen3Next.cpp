#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Gated delta nets in most layers, attention with an output gate in the others, and experts beside
// a gated shared one.
llvm::Expected<const Family *> chooseQwen3Next(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3NextForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    nameSharedExpert(names);
    nameDeltaNet(names);
    names.deltaQkvz = "linear_attn.in_proj_qkvz";
    names.deltaBa = "linear_attn.in_proj_ba";
  });
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(2), Null::Allowed},
      {"num_experts", &H::experts, ranges::maybeExperts, int64_t(512)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(10)},
      {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(512)},
      {"shared_expert_intermediate_size", &H::sharedInner, ranges::width, int64_t(512)},
      {"norm_topk_prob", &H::normalizeGate, {}, true},
      {"decoder_sparse_step", &H::sparseStep, ranges::layers, int64_t(1)},
      optionalKey("mlp_only_layers", &H::denseLayers, {0, 4095}),
  };
  static constexpr FixedKey fixed[] = {{"hidden_act", R"(["silu", "swish"])"},
                                       {"use_sliding_window", "[false]"}};
  static const llvm::ArrayRef<KeyRule> keys[] = {own, deltaNetKeys, commonKeys()};
  static const Family family = {
      .name = "qwen3_next",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = deltaNetTraits,
      .names = &names,
      .derive = [](Hyperparameters &h) { h.sparse = true; },
  };
  return &family;
}

} // namespace mica
