#include "frontend/families/Families.h"
#include "frontend/families/Qwen3Next.h"
#include "frontend/families/QwenExperts.h"

namespace mica {

using H = Hyperparameters;

/// Names of modules by the form of the checkpoint: whether the text model is `within` a larger one,
/// and whether all experts are `stacked` in one tensor.
template <bool within, bool stacked> static constexpr NamingTable makeNames() {
  NamingTable names = transformersNames;
  nameSharedExpert(names);
  nameDeltaNet(names);
  if (within) {
    names.embedding = "model.language_model.embed_tokens";
    names.layers = "model.language_model.layers";
    names.finalNorm = "model.language_model.norm";
  }
  if (stacked) {
    names.expert = "mlp.experts";
    names.stackedGateUp = "gate_up_proj";
    names.stackedDown = "down_proj";
    names.gateUpInterleaved = false;
  }
  return names;
}
template <bool within, bool stacked>
static constexpr NamingTable names = makeNames<within, stacked>();

static constexpr KeyRule sharedKeys[] = {
    {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(4), Null::Allowed},
};
static constexpr KeyRule expertKeys[] = {
    {"num_key_value_heads", &H::kvHeads, ranges::heads, int64_t(2), Null::Allowed},
    {"num_experts", &H::experts, ranges::experts, int64_t(256)},
    {"num_experts_per_tok", &H::expertsPerToken, ranges::experts, int64_t(8)},
    {"moe_intermediate_size", &H::expertInner, ranges::width, int64_t(512)},
    {"shared_expert_intermediate_size", &H::sharedInner, ranges::width, int64_t(512)},
    optionalKey("intermediate_size", &H::inner, ranges::width),
};
static constexpr FixedKey fixed[] = {
    {"attn_output_gate", "[true]"},        {"hidden_act", R"(["silu", "swish"])"},
    {"mamba_ssm_dtype", R"(["float32"])"}, {"mlp_only_layers", "[[], null]"},
    {"norm_topk_prob", "[true]"},          {"output_gate_type", R"(["silu", "swish"])"},
};
static constexpr IgnoredKeyRow ignoredKeys[] = {
    {"mtp_num_hidden_layers", reasons::mtpHead},
    {"mtp_use_dedicated_embeddings", reasons::mtpHead},
};

static constexpr KeyRule keysAround[] = {{"tie_word_embeddings", &H::tiedHead, {}, false}};
static constexpr llvm::StringLiteral ofImages = "token of an image or a video";
static constexpr IgnoredKeyRow ignoredAround[] = {
    {"image_token_id", ofImages},        {"language_model_only", "selects what Python code loads"},
    {"video_token_id", ofImages},        {"vision_end_token_id", ofImages},
    {"vision_start_token_id", ofImages},
};
static constexpr IgnoredKeyRow leftOutParts[] = {{"vision_config", reasons::encoder}};
static constexpr TextPart textPart = {"text_config", "qwen3_5_text", keysAround, ignoredAround,
                                      leftOutParts};
static constexpr TextPart textPartOfMoe = {"text_config", "qwen3_5_moe_text", keysAround,
                                           ignoredAround, leftOutParts};

static constexpr FamilyTraits traits = [] {
  FamilyTraits traits = deltaNetTraits;
  traits.imagePositions = true;
  return traits;
}();

static Family describe(llvm::StringLiteral name, llvm::ArrayRef<llvm::StringLiteral> architectures,
                       bool sparse, const NamingTable *names, const TextPart *textPart = nullptr) {
  static const llvm::ArrayRef<KeyRule> denseTables[] = {sharedKeys, deltaNetKeys, commonKeys()};
  static const llvm::ArrayRef<KeyRule> sparseTables[] = {expertKeys, deltaNetKeys, commonKeys()};
  return {
      .name = name,
      .architectures = architectures,
      .keys = sparse ? sparseTables : denseTables,
      .fixed = fixed,
      .traits = traits,
      .names = names,
      .derive = sparse ? +[](Hyperparameters &h) { h.sparse = h.normalizeGate = true; } : nullptr,
      .ignoredKeys = ignoredKeys,
      .textPart = textPart,
  };
}

// Qwen3.5 and 3.6: gated delta nets in most layers, attention with an output gate in the others.
llvm::Expected<const Family *> chooseQwen35Text(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3_5ForCausalLM"};
  static const Family family = describe("qwen3_5_text", architectures, false, &names<false, false>);
  return &family;
}

// The text part of Qwen3.5 and 3.6 with a vision encoder, which is omitted.
llvm::Expected<const Family *> chooseQwen35(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3_5ForConditionalGeneration"};
  static const Family family =
      describe("qwen3_5", architectures, false, &names<true, false>, &textPart);
  return &family;
}

// Qwen3.5 and 3.6 with experts and a gated shared one.
llvm::Expected<const Family *> chooseQwen35MoeText(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3_5MoeForCausalLM"};
  static const Family family =
      describe("qwen3_5_moe_text", architectures, true, &names<false, false>);
  return &family;
}

// The text part of Qwen3.5 and 3.6 with experts and a vision encoder, which is omitted.
llvm::Expected<const Family *> chooseQwen35Moe(const FamilyEvidence &) {
  static constexpr llvm::StringLiteral architectures[] = {"Qwen3_5MoeForConditionalGeneration"};
  static const Family family =
      describe("qwen3_5_moe", architectures, true, &names<true, true>, &textPartOfMoe);
  return &family;
}

/// Calls `derive` if the file has the sections of rope, which llama.cpp requires for Qwen3.5.
template <llvm::Error (*derive)(const GgufKeys &, Hyperparameters &)>
static llvm::Error deriveWithSections(const GgufKeys &keys, Hyperparameters &h) {
  constexpr llvm::StringLiteral key = "rope.dimension_sections";
  return keys.find(key) ? derive(keys, h) : keys.missingKey(key, "which rope in Qwen3.5 needs");
}

static constexpr llvm::ArrayRef<KeyRule> ggufKeys[] = {gguf::deltaNetKeys, gguf::sizeKeys,
                                                       gguf::decoderKeys, gguf::rmsNormKeys};

constexpr GgufArchitecture ggufQwen35Text = {
    .name = "qwen35",
    .keys = ggufKeys,
    .ignoredKeys = ggufDeltaNetUsedKeys,
    .modules = ggufDeltaNetModules,
    .addedToNormWeights = true,
    .valueHeadsInterleaved = true,
    .derive = deriveWithSections<deriveGgufDeltaNet>,
};

static constexpr llvm::ArrayRef<KeyRule> ggufKeysOfMoe[] = {
    ggufSharedExpertKeys, gguf::expertKeys,  gguf::deltaNetKeys,
    gguf::sizeKeys,       gguf::decoderKeys, gguf::rmsNormKeys};

constexpr GgufArchitecture ggufQwen35MoeText = {
    .name = "qwen35moe",
    .keys = ggufKeysOfMoe,
    .fixed = ggufDeltaNetFixedKeys,
    .ignoredKeys = ggufDeltaNetUsedKeys,
    .modules = ggufDeltaNetModules,
    .addedToNormWeights = true,
    .valueHeadsInterleaved = true,
    .derive = deriveWithSections<deriveGgufDeltaNetExperts>,
};

} // namespace mica
