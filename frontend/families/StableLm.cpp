#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Layer norms; a quarter of each head is rotated; optional q/k norms per head and parallel
// residual.
llvm::Expected<const Family *> chooseStableLm(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"StableLmForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.queryNorm = "self_attn.q_layernorm.norms.*";
    names.keyNorm = "self_attn.k_layernorm.norms.*";
  });
  static constexpr KeyRule own[] = {
      {"layer_norm_eps", &H::eps, ranges::eps, 1e-5},
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(32)},
      {"use_qkv_bias", &H::attentionBias, {}, false},
      {"qk_layernorm", &H::qkNorm, {}, false},
      {"use_parallel_residual", &H::parallelResidual, {}, false},
      {"partial_rotary_factor", &H::partialRotary, ranges::share, Unset()},
      {"rope_pct", &H::partialRotary, ranges::share, Unset()},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "stablelm",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.norm = NormKind::Layer,
                 .normBias = true,
                 .qkNorm = QkNorm::OwnPerHead,
                 .parallel = Parallel::SharedNorm,
                 .partialRotary = 0.25},
      .names = &names,
      .derive = [](Hyperparameters &h) { h.outBias = false; },
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"use_parallel_residual", &H::parallelResidual, {}, false},
    gguf::rotatedKey,
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::layerNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"},
                                         {&H::qkNorm, "blk.0.attn_q_norm.weight"}};

// The norm weights of all heads are one tensor.
constexpr GgufArchitecture ggufStableLm = {
    .name = "stablelm",
    .keys = ggufKeys,
    .flags = ggufFlags,
    .names = [](const GgufModel &) { return &transformersNames; },
};

} // namespace mica
