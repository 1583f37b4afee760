#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Mistral with experts, whose weights are always normalized to a sum of 1.
llvm::Expected<const Family *> chooseMixtral(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"MixtralForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.router = "block_sparse_moe.gate";
    names.expert = "block_sparse_moe.experts.*";
    names.expertGate = "w1";
    names.expertUp = "w3";
    names.expertDown = "w2";
  });
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8), Null::Allowed},
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
      optionalKey("sliding_window", &H::window, ranges::window),
      {"num_local_experts", &H::experts, ranges::experts, int64_t(8)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(2)},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "mixtral",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.defaultTheta = 1e6, .usesSlidingWindow = everyLayerUsesSlidingWindow},
      .names = &names,
      .derive =
          [](Hyperparameters &h) {
            h.sparse = h.normalizeGate = true;
            h.expertInner = h.inner;
          },
  };
  return &family;
}

// GGUF files have the architecture llama, with experts.
static constexpr KeyRule ggufOwn[] = {
    {"expert_count", &H::experts, ranges::experts},
    {"expert_used_count", &H::expertsPerToken, ranges::experts},
    gguf::windowKey,
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};

constexpr GgufArchitecture ggufMixtral = {
    .name = "llama",
    .keys = ggufKeys,
    .pairing = Pairing::Interleaved,
    .matches =
        [](const GgufKeys &keys) {
          const llvm::json::Value *experts = keys.find("expert_count");
          return experts && *experts != llvm::json::Value(0);
        },
};

} // namespace mica
