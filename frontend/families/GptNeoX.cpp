#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Fused q, k and v, head by head; parallel residual with two norms.
llvm::Expected<const Family *> chooseGptNeoX(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"GPTNeoXForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.embedding = "gpt_neox.embed_in";
    names.layers = "gpt_neox.layers";
    names.finalNorm = "gpt_neox.final_layer_norm";
    names.head = "embed_out";
    names.qkv = "attention.query_key_value";
    names.qkvOrder = QkvOrder::PerHead;
    names.query = "attention.query";
    names.key = "attention.key";
    names.value = "attention.value";
    names.out = "attention.dense";
    names.up = "mlp.dense_h_to_4h";
    names.down = "mlp.dense_4h_to_h";
  });
  static constexpr KeyRule own[] = {
      {"layer_norm_eps", &H::eps, ranges::eps, 1e-5},
      {"attention_bias", &H::attentionBias, {}, true},
      {"use_parallel_residual", &H::parallelResidual, {}, true},
      {"rotary_pct", &H::partialRotary, ranges::share, Unset()},
      {"rotary_emb_base", &H::theta, ranges::theta, Unset()},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "gpt_neox",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.norm = NormKind::Layer,
                 .normBias = true,
                 .parallel = Parallel::OwnNorms,
                 .gated = false,
                 .activation = Activation::Gelu,
                 .partialRotary = 0.25},
      .names = &names,
      .derive = [](Hyperparameters &h) { h.mlpBias = true; },
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"use_parallel_residual", &H::parallelResidual, {}},
    gguf::rotatedKey,
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::layerNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_qkv.bias"}};

constexpr GgufArchitecture ggufGptNeoX = {
    .name = "gptneox", .keys = ggufKeys, .flags = ggufFlags, .names = joinedGgufNames};

} // namespace mica
