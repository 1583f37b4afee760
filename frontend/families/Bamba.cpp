#include "frontend/families/Families.h"
#include "frontend/families/Mamba.h"

#include "llvm/ADT/STLExtras.h"

namespace mica {

using H = Hyperparameters;

// Mamba 2 in most layers, attention in the others; half of each head is rotated.
llvm::Expected<const Family *> chooseBamba(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"BambaForCausalLM"};
  static constexpr NamingTable names = changed(transformersNames, nameBamba);
  static constexpr KeyRule own[] = {
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8), Null::Allowed},
      optionalKey("attn_layer_indices", &H::attentionLayers),
      {"attention_bias", &H::attentionBias, {}, false},
      {"mlp_bias", &H::mlpBias, {}, false},
  };
  static constexpr FixedKey fixed[] = {{"hidden_act", R"(["silu", "swish"])"}, timeStepLimit};
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"attn_rotary_emb", "is overridden by the share of a head that is rotated"},
      {"mamba_chunk_size", "does not change results"},
      {"num_logits_to_keep", "selects outputs of Python code"},
      {"z_loss_coefficient", "only affects training"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, mambaKeys, commonKeys()};
  static const Family family = {
      .name = "bamba",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixed,
      .traits = {.otherMixer = Mixer::Mamba, .partialRotary = 0.5},
      .names = &names,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr KeyRule ggufOwn[] = {
    {"attention.head_count_kv", &H::kvHeadsOfLayers, {0, ranges::heads.max}},
    gguf::rotatedKey,
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::mambaKeys, gguf::sizeKeys,
                                                       gguf::decoderKeys, gguf::rmsNormKeys};
// Where it is false, llama.cpp computes no rope.
static constexpr FixedKey ggufFixed[] = {{"rope.scaling.finetuned", "[true]"}};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.*.attn_q.bias"},
                                         {&H::mlpBias, "blk.*.ffn_up.bias"},
                                         {&H::convBias, "blk.*.ssm_conv1d.bias"}};

/// Granite's files have its multipliers, and none of them is in Bamba's.
static bool isBamba(const GgufKeys &keys) {
  return llvm::none_of(
      llvm::ArrayRef<llvm::StringRef>(
          {"attention.scale", "embedding_scale", "residual_scale", "logit_scale", "expert_count"}),
      [&](llvm::StringRef key) { return keys.find(key) != nullptr; });
}

static llvm::Error checkGgufRope(const GgufKeys &keys, Hyperparameters &h) {
  int64_t half = h.headDim.value_or(*h.hidden / *h.heads) / 2;
  if (*h.rotatedDim != half)
    return keys.wrongValue("rope.dimension_count", llvm::Twine(half) + ", half of a head",
                           hints::otherModel);
  return llvm::Error::success();
}

constexpr GgufArchitecture ggufBamba = {
    .name = "granitehybrid",
    .keys = ggufKeys,
    .fixed = ggufFixed,
    .flags = ggufFlags,
    .restoresHeads = true,
    .matches = isBamba,
    .derive = checkGgufRope,
};

} // namespace mica
