#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

// Pre- and post-norms; half of each head is rotated, interleaved.
llvm::Expected<const Family *> chooseGlm4(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Glm4ForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
    names.postAttentionNorm = "post_self_attn_layernorm";
    names.postFfnNorm = "post_mlp_layernorm";
    names.gateUp = "mlp.gate_up_proj";
  });
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(2)},
      {"head_dim", &H::headDim, ranges::headDim, int64_t(128)},
      {"rms_norm_eps", &H::eps, ranges::eps, 1.5625e-7},
      {"attention_bias", &H::attentionBias, {}, true},
      {"partial_rotary_factor", &H::partialRotary, ranges::share, Unset()},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const Family family = {
      .name = "glm4",
      .architectures = architectures,
      .keys = keys,
      .fixed = {},
      .traits = {.pairing = Pairing::Interleaved, .postNorms = true, .partialRotary = 0.5},
      .names = &names,
      .derive = [](Hyperparameters &h) { h.outBias = false; },
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {gguf::rotatedKey};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"}};

constexpr GgufArchitecture ggufGlm4 = {.name = "glm4", .keys = ggufKeys, .flags = ggufFlags};

} // namespace mica
