#include "frontend/families/Families.h"

namespace mica {

using H = Hyperparameters;

static constexpr KeyRule sharedKeys[] = {
    {"head_dim", &H::headDim, ranges::headDim, int64_t(256)},
    {"attention_bias", &H::attentionBias, {}, false},
    {"tie_word_embeddings", &H::tiedHead, {}, true},
};
static constexpr FixedKey bidirectional = {"use_bidirectional_attention", "[false, null]"};
static constexpr FixedKey fixedKeys[] = {bidirectional,
                                         {"hidden_activation", R"(["gelu_pytorch_tanh", null])"}};
// The later generations have another key for the activation, besides that of the first one. Their
// classes reject null for it, which meant the default in files of the first one.
static constexpr KeyRule activationKey = {"hidden_activation", &H::activation, {}, Unset()};
static constexpr FixedKey fixedKeysOf2And3[] = {bidirectional,
                                                {"hidden_act", R"(["gelu", "gelu_pytorch_tanh"])"}};
static constexpr NamingTable namesOf2And3 = changed(transformersNames, [](NamingTable &names) {
  names.postAttentionNorm = "post_attention_layernorm";
  names.ffnNorm = "pre_feedforward_layernorm";
  names.postFfnNorm = "post_feedforward_layernorm";
});

// Norm weights are stored as an offset from 1; embeddings are scaled by the square root of their
// size. "gelu" in the first published files means its tanh approximation.
llvm::Expected<const Family *> chooseGemma(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"GemmaForCausalLM"};
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(16)},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, sharedKeys, commonKeys()};
  static const Family family = {
      .name = "gemma",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixedKeys,
      .traits = {.normRounding = NormRounding::AfterWeight,
                 .weightOffset = 1,
                 .activation = Activation::GeluTanh,
                 .scalesEmbedding = true},
      .derive =
          [](Hyperparameters &h) {
            if (h.activation == "gelu")
              h.activation = "gelu_pytorch_tanh";
          },
  };
  return &family;
}

// Gemma with pre- and post-norms, softcapping of attention and logits, and a sliding window in
// every other layer.
llvm::Expected<const Family *> chooseGemma2(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Gemma2ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(4)},
      activationKey,
      {"sliding_window", &H::window, ranges::window, int64_t(4096), Null::Allowed},
      {"query_pre_attn_scalar", &H::scoreScalar, ranges::multiplier, 256.0},
      {"attn_logit_softcapping", &H::scoreSoftcap, ranges::multiplier, 50.0, Null::Allowed},
      {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, 30.0, Null::Allowed},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, sharedKeys, commonKeys()};
  static const Family family = {
      .name = "gemma2",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixedKeysOf2And3,
      .traits = {.normRounding = NormRounding::AfterWeight,
                 .weightOffset = 1,
                 .postNorms = true,
                 .activation = Activation::GeluTanh,
                 .scalesEmbedding = true,
                 .usesSlidingWindow = [](const Hyperparameters &,
                                         int64_t layer) { return layer % 2 == 0; }},
      .names = &namesOf2And3,
  };
  return &family;
}

// Gemma 2 with q/k norms instead of softcapping; layers with a window have a separate rope.
llvm::Expected<const Family *> chooseGemma3Text(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Gemma3ForCausalLM"};
  static constexpr KeyRule own[] = {
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(4)},
      activationKey,
      {"sliding_window", &H::window, ranges::window, int64_t(4096), Null::Allowed},
      {"sliding_window_pattern", &H::windowPattern, ranges::layers, int64_t(6)},
      {"rope_local_base_freq", &H::localTheta, ranges::theta, Unset()},
      {"query_pre_attn_scalar", &H::scoreScalar, ranges::multiplier, 256.0},
      {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, Unset(), Null::Allowed},
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"_sliding_window_pattern", "is overridden by layer_types"},
      {"attn_logit_softcapping",
       "is stored by a class of transformers that has no attention softcapping"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, sharedKeys, commonKeys()};
  static const Family family = {
      .name = "gemma3_text",
      .architectures = architectures,
      .keys = keys,
      .fixed = fixedKeysOf2And3,
      .traits = {.normRounding = NormRounding::AfterWeight,
                 .weightOffset = 1,
                 .qkNorm = QkNorm::PerHead,
                 .postNorms = true,
                 .activation = Activation::GeluTanh,
                 .scalesEmbedding = true,
                 .defaultTheta = 1e6,
                 .defaultLocalTheta = 1e4,
                 .usesSlidingWindow =
                     [](const Hyperparameters &h, int64_t layer) {
                       return (layer + 1) % *h.windowPattern != 0;
                     }},
      .names = &namesOf2And3,
      .ignoredKeys = ignoredKeys,
  };
  return &family;
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};

constexpr GgufArchitecture ggufGemma = {
    .name = "gemma", .keys = ggufKeys, .addedToNormWeights = true};

/// Scores are divided by the square root of the head size, except in the largest model, which is
/// identified by its number of layers, by that of hidden size / heads.
static llvm::Error deriveGgufScale(Hyperparameters &h, int64_t layersOfLargest) {
  int64_t share = *h.hidden / *h.heads;
  bool isLargest = *h.layers == layersOfLargest && share > 0;
  h.scoreScalar = static_cast<double>(isLargest ? share : h.headDim.value_or(share));
  return llvm::Error::success();
}

static constexpr KeyRule ggufOwnOf2[] = {
    {"attention.sliding_window", &H::window, ranges::window, int64_t(4096)},
    {"attn_logit_softcapping", &H::scoreSoftcap, ranges::multiplier, 50.0},
    {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, 30.0},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeysOf2[] = {ggufOwnOf2, gguf::sizeKeys,
                                                          gguf::decoderKeys, gguf::rmsNormKeys};

constexpr GgufArchitecture ggufGemma2 = {
    .name = "gemma2",
    .keys = ggufKeysOf2,
    .addedToNormWeights = true,
    .derive = [](const GgufKeys &, Hyperparameters &h) { return deriveGgufScale(h, 46); }};

static constexpr KeyRule ggufOwnOf3[] = {
    {"attention.sliding_window", &H::window, ranges::window},
    {"attention.sliding_window_pattern", &H::windowPattern, ranges::layers, int64_t(6)},
    gguf::thetaKey,
    {"rope.freq_base_swa", &H::localTheta, ranges::theta, Unset()},
    {"final_logit_softcapping", &H::logitSoftcap, ranges::multiplier, Unset()},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeysOf3[] = {ggufOwnOf3, gguf::sizeKeys,
                                                          gguf::decoderKeys, gguf::rmsNormKeys};

constexpr GgufArchitecture ggufGemma3Text = {
    .name = "gemma3",
    .keys = ggufKeysOf3,
    .addedToNormWeights = true,
    .derive = [](const GgufKeys &, Hyperparameters &h) { return deriveGgufScale(h, 62); }};

} // namespace mica
