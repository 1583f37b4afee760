#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Fused q, k and v; fused gate and up.
llvm::Expected<const Family *> choosePhi3(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Phi3ForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.qkv = "self_attn.qkv_proj";
    names.gateUp = "mlp.gate_up_proj";
  });
  static constexpr KeyRule own[] = {
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
      optionalKey("sliding_window", &H::window, ranges::window),
      optionalKey("original_max_position_embeddings", &H::originalPositions, ranges::positions),
      {"partial_rotary_factor", &H::partialRotary, ranges::share, Unset(), Null::Allowed},
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"attention_bias", "is not read: the projections of attention have no biases"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "phi3",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.partialRotary = 1, .usesSlidingWindow = everyLayerUsesSlidingWindow},
      .names = &names,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    gguf::windowKey,
    {"rope.dimension_count", &H::rotatedDim, ranges::headDim, Unset()},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};

constexpr GgufArchitecture ggufPhi3 = {.name = "phi3", .keys = ggufKeys};

} // namespace mica
