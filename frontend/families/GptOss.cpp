#include "frontend/families/Families.h"
#include "frontend/support/InputError.h"

namespace mica {

using H = Hyperparameters;

/// The constants of clamped experts, which GGUF files do not contain.
static constexpr double gateAlpha = 1.702, gateLimit = 7;

static constexpr NamingTable names = changed(transformersNames, [](NamingTable &names) {
  names.sinks = "self_attn.sinks";
  names.router = "mlp.router";
  names.expert = "mlp.experts";
  names.stackedGateUp = "gate_up_proj";
  names.stackedDown = "down_proj";
  names.stackedTransposed = true;
});

// The published checkpoints: MXFP4 blocks, which are along K, so that matrices are stored as [E, N,
// K].
static constexpr NamingTable namesOfBlocks = changed(names, [](NamingTable &names) {
  names.stackedSuffix = "_blocks";
  names.stackedTransposed = false;
});

/// The rope of transformers if a config has no rope keys.
static const llvm::json::Object &defaultRope() {
  static const llvm::json::Object rope{
      {"rope_type", "yarn"}, {"factor", 32.0},    {"beta_fast", 32.0},
      {"beta_slow", 1.0},    {"truncate", false}, {"original_max_position_embeddings", 4096}};
  return rope;
}

// Experts with biases and clamped activations, a sliding window in every other layer, an attention
// sink per head.
llvm::Expected<const Family *> chooseGptOss(const FamilyEvidence &evidence) {
  // If absent, it is yarn; null meant no scaling in some versions of transformers.
  const llvm::json::Object *config = evidence.config;
  if (const llvm::json::Value *rope = config ? config->get("rope_scaling") : nullptr;
      rope && rope->kind() == llvm::json::Value::Null && !config->get("rope_parameters"))
    return inputError(evidence.path, "has \"rope_scaling\": null, which does not specify the type",
                      "write an object with \"rope_type\": \"default\" or \"yarn\"");
  static constexpr llvm::StringLiteral architectures[] = {"GptOssForCausalLM"};
  static constexpr KeyRule own[] = {
      {"head_dim", &H::headDim, ranges::headDim, int64_t(64)},
      {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(8)},
      {"rms_norm_eps", &H::eps, ranges::eps, 1e-5},
      {"sliding_window", &H::window, ranges::window, int64_t(128), Null::Allowed},
      {"attention_bias", &H::attentionBias, {}, true},
      {"num_local_experts", &H::experts, ranges::experts, int64_t(128)},
      {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(4)},
      {"swiglu_alpha", &H::gateAlpha, ranges::multiplier, gateAlpha},
      {"swiglu_limit", &H::gateLimit, ranges::multiplier, gateLimit},
      optionalKey("quantization_config", &H::quantization),
  };
  static constexpr IgnoredKeyRow ignoredKeys[] = {
      {"experts_per_token", "is overridden by num_experts_per_tok"},
      {"initial_context_length", "is overridden by rope's scaling"},
  };
  static const llvm::ArrayRef<KeyRule> keys[] = {own, commonKeys()};
  static const auto familyWith = [](const NamingTable &table) {
    return Family{
        .name = "gpt_oss",
        .architectures = architectures,
        .keys = keys,
        .fixed = {},
        .traits = {.normRounding = NormRounding::AfterWeight,
                   .sinks = true,
                   .routerBias = true,
                   .expertBias = true,
                   .defaultTheta = 150000,
                   .usesSlidingWindow = [](const Hyperparameters &,
                                           int64_t layer) { return layer % 2 == 0; }},
        .names = &table,
        .derive =
            [](Hyperparameters &h) {
              h.sparse = h.normalizeGate = true;
              h.expertInner = h.inner;
              if (!h.ropeScaling && !h.ropeParameters && !h.ropeKeys)
                h.ropeParameters = &defaultRope();
            },
        .ignoredKeys = ignoredKeys,
    };
  };
  static const Family plain = familyWith(names), blocks = familyWith(namesOfBlocks);
  bool hasBlocks = evidence.hasTensor
                       ? evidence.hasTensor("model.layers.0.mlp.experts.down_proj_blocks")
                       : config && config->getObject("quantization_config");
  return hasBlocks ? &blocks : &plain;
}

static constexpr KeyRule ggufOwn[] = {
    {"attention.sliding_window", &H::window, ranges::window},
    gguf::thetaKey,
    {"expert_count", &H::experts, ranges::experts},
    {"expert_used_count", &H::expertsPerToken, ranges::experts},
    {"expert_feed_forward_length", &H::inner, ranges::width, Unset()},
};
static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {ggufOwn, gguf::sizeKeys, gguf::decoderKeys,
                                                       gguf::rmsNormKeys};
// Softmax over the selected experts only.
static constexpr FixedKey ggufFixed[] = {{"expert_gating_func", "[3]"}};
static constexpr GgufFlag ggufFlags[] = {{&H::attentionBias, "blk.0.attn_q.bias"}};
// Despite its name, this norm precedes the MLP.
static constexpr GgufModule ggufOwnModules[] = {{"post_attention_norm", &NamingTable::ffnNorm}};
static constexpr NamingTable ggufNames = changed(transformersNames, [](NamingTable &names) {
  names.sinks = "self_attn.sinks";
  names.router = "mlp.router";
});

constexpr GgufArchitecture ggufGptOss = {
    .name = "gpt-oss",
    .keys = ggufKeys,
    .fixed = ggufFixed,
    .flags = ggufFlags,
    .modules = ggufOwnModules,
    .truncatesYarn = false,
    .names = [](const GgufModel &) { return &ggufNames; },
    .derive = [](const GgufKeys &, Hyperparameters &h) -> llvm::Error {
      h.gateAlpha = gateAlpha;
      h.gateLimit = gateLimit;
      return llvm::Error::success();
    },
};

} // namespace mica
