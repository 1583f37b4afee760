//===- GgufDefaultsTest.cpp - defaults of absent GGUF keys ----------------===//
//
// One table: a file with all keys of its architecture, the key that is removed or changed, and the
// resulting value, or the error that requires the key. Values are llama.cpp's.
//
//===----------------------------------------------------------------------===//
#include "frontend/config/gguf/GgufConfig.h"

#include "tests/unit/frontend/GgufWriter.h"
#include "tests/unit/frontend/TestFolder.h"

#include <cmath>

using namespace mica;
using namespace mica::test;

namespace {

using Value = std::variant<uint32_t, float, bool, std::string>;
using Keys = std::map<std::string, Value>;

constexpr uint32_t context = 128, hidden = 32, heads = 4, inner = 64;
constexpr float theta = 5e4;

/// Keys of a file of `architecture`, in addition to the common ones.
struct Sample {
  std::string architecture;
  Keys own;
  bool isLayerNorm = false, hasRope = true;
  std::vector<std::string> vectors = {}; ///< names of F32 tensors of a number per pair
};

Keys operator+(Keys keys, const Keys &others) {
  for (const auto &[key, value] : others)
    keys.insert_or_assign(key, value);
  return keys;
}

const Keys experts = {{"expert_count", 4u}, {"expert_used_count", 2u}};
const Keys linear = {{"rope.scaling.type", "linear"}, {"rope.scaling.factor", 2.f}};
const Keys yarn = {{"rope.scaling.type", "yarn"},
                   {"rope.scaling.factor", 4.f},
                   {"rope.scaling.original_context_length", 16u},
                   {"rope.scaling.yarn_attn_factor", 3.f},
                   {"rope.scaling.yarn_beta_fast", 8.f},
                   {"rope.scaling.yarn_beta_slow", 2.f}};
const Keys longRope = {{"rope.scaling.type", "longrope"},
                       {"rope.scaling.original_context_length", 16u},
                       {"rope.scaling.attn_factor", 1.5f}};
const Keys qwenExperts = {{"expert_feed_forward_length", 16u}};
const Keys firstDeepSeek = {{"attention.head_count_kv", heads},  {"leading_dense_block_count", 1u},
                            {"expert_shared_count", 2u},         {"expert_weights_scale", 1.f},
                            {"expert_feed_forward_length", 16u}, {"expert_weights_norm", true}};
const Keys latents = {{"attention.head_count_kv", 1u},     {"leading_dense_block_count", 1u},
                      {"expert_shared_count", 1u},         {"expert_weights_scale", 2.f},
                      {"expert_feed_forward_length", 16u}, {"attention.q_lora_rank", 8u},
                      {"attention.kv_lora_rank", 12u},     {"rope.dimension_count", 4u},
                      {"attention.key_length", 10u},       {"attention.value_length", 6u},
                      {"expert_group_count", 2u},          {"expert_group_used_count", 1u}};
const Keys latentYarn = {{"rope.scaling.type", "yarn"},
                         {"rope.scaling.factor", 4.f},
                         {"rope.scaling.original_context_length", 16u},
                         {"rope.scaling.yarn_log_multiplier", 0.05f}};

const Keys mamba = {{"ssm.conv_kernel", 4u},
                    {"ssm.inner_size", 48u},
                    {"ssm.state_size", 10u},
                    {"ssm.time_step_rank", 6u},
                    {"ssm.group_count", 2u}};
const Keys oneBlock = mamba + Keys{{"attention.layer_norm_epsilon", 1e-5f}};
const Keys deltaNet = {{"block_count", 8u},          {"full_attention_interval", 2u},
                       {"rope.dimension_count", 8u}, {"ssm.conv_kernel", 4u},
                       {"ssm.inner_size", 20u},      {"ssm.state_size", 6u},
                       {"ssm.time_step_rank", 4u},   {"ssm.group_count", 2u}};
const Keys sharedExpert = {{"expert_feed_forward_length", 16u},
                           {"expert_shared_feed_forward_length", 24u}};

const std::map<std::string, Sample> samples = {
    {"bamba", {"granitehybrid", mamba + Keys{{"rope.dimension_count", 4u}}}},
    {"command-r", {"command-r", {{"logit_scale", 0.5f}}, /*isLayerNorm=*/true}},
    {"deepseek", {"deepseek", experts + firstDeepSeek}},
    {"deepseek2 of V2", {"deepseek2", experts + latents + Keys{{"expert_gating_func", 1u}}}},
    {"deepseek2 of V3",
     {"deepseek2",
      experts + latents + Keys{{"expert_gating_func", 2u}, {"expert_weights_norm", true}}}},
    {"deepseek2 with yarn",
     {"deepseek2", experts + latents + latentYarn + Keys{{"expert_gating_func", 2u}}}},
    {"gemma", {"gemma", {{"attention.key_length", 16u}}}},
    {"gemma2",
     {"gemma2",
      {{"attention.sliding_window", 16u},
       {"attn_logit_softcapping", 7.f},
       {"final_logit_softcapping", 9.f}}}},
    {"gemma3",
     {"gemma3",
      {{"block_count", 8u},
       {"attention.sliding_window", 16u},
       {"attention.sliding_window_pattern", 3u},
       {"rope.freq_base_swa", 500.f},
       {"final_logit_softcapping", 9.f}}}},
    {"glm4", {"glm4", {{"rope.dimension_count", 4u}}}},
    {"glm4 with linear", {"glm4", linear + Keys{{"rope.dimension_count", 4u}}}},
    {"gpt-oss",
     {"gpt-oss",
      experts + Keys{{"attention.sliding_window", 16u}, {"expert_feed_forward_length", inner}}}},
    {"gpt2",
     {"gpt2", {{"feed_forward_length", 4 * hidden}}, /*isLayerNorm=*/true, /*hasRope=*/false}},
    {"gptneox",
     {"gptneox",
      {{"use_parallel_residual", true}, {"rope.dimension_count", 4u}},
      /*isLayerNorm=*/true}},
    {"granite",
     {"granite",
      {{"attention.scale", 0.25f},
       {"embedding_scale", 3.f},
       {"residual_scale", 0.5f},
       {"logit_scale", 4.f},
       {"rope.scaling.finetuned", true}}}},
    {"falcon-h1", {"falcon-h1", mamba}},
    {"granitehybrid",
     {"granitehybrid", mamba + Keys{{"attention.scale", 0.25f},
                                    {"embedding_scale", 3.f},
                                    {"residual_scale", 0.5f},
                                    {"logit_scale", 4.f},
                                    {"rope.scaling.finetuned", false}}}},
    {"granitehybrid with experts",
     {"granitehybrid", mamba + experts + Keys{{"expert_shared_feed_forward_length", 24u}}}},
    {"mamba2",
     {"mamba2", mamba + Keys{{"attention.head_count", 0u}, {"feed_forward_length", 0u}},
      /*isLayerNorm=*/false,
      /*hasRope=*/false}},
    {"nemotron_h", {"nemotron_h", oneBlock + Keys{{"nextn_predict_layers", 1u}}}},
    {"nemotron_h_moe",
     {"nemotron_h_moe", oneBlock + experts + sharedExpert +
                            Keys{{"expert_group_count", 2u},
                                 {"expert_group_used_count", 1u},
                                 {"expert_weights_norm", true},
                                 {"expert_weights_scale", 2.f}}}},
    {"qwen35", {"qwen35", deltaNet + Keys{{"rope.dimension_sections", 2u}}}},
    {"qwen35moe",
     {"qwen35moe", deltaNet + experts + sharedExpert + Keys{{"rope.dimension_sections", 2u}}}},
    {"qwen3next", {"qwen3next", deltaNet + experts + sharedExpert}},
    {"qwen3next with one size", {"qwen3next", deltaNet + experts}},
    {"lfm2", {"lfm2", {{"shortconv.l_cache", 3u}}}},
    {"lfm2moe",
     {"lfm2moe", experts + Keys{{"shortconv.l_cache", 3u},
                                {"leading_dense_block_count", 1u},
                                {"expert_feed_forward_length", 16u},
                                {"expert_gating_func", 2u},
                                {"expert_weights_scale", 1.5f}}}},
    {"llama", {"llama", {{"attention.key_length", 16u}}}},
    {"llama with experts", {"llama", experts}},
    {"llama with linear", {"llama", linear}},
    {"llama with yarn", {"llama", yarn}},
    {"phi3", {"phi3", {{"attention.sliding_window", 16u}, {"rope.dimension_count", 4u}}}},
    {"phi3 with longrope",
     {"phi3",
      longRope,
      /*isLayerNorm=*/false,
      /*hasRope=*/true,
      {"rope_factors_short.weight", "rope_factors_long.weight"}}},
    {"qwen2moe",
     {"qwen2moe",
      experts + qwenExperts +
          Keys{{"expert_shared_feed_forward_length", 16u}, {"expert_weights_norm", true}}}},
    {"qwen3", {"qwen3", {}}},
    {"qwen3moe", {"qwen3moe", experts + qwenExperts + Keys{{"expert_weights_norm", false}}}},
    {"stablelm",
     {"stablelm",
      {{"use_parallel_residual", true}, {"rope.dimension_count", 4u}},
      /*isLayerNorm=*/true}},
    {"starcoder2", {"starcoder2", {{"attention.sliding_window", 16u}}, /*isLayerNorm=*/true}},
};

Keys keysOf(const Sample &sample) {
  Keys keys = {{"context_length", context},
               {"embedding_length", hidden},
               {"block_count", 2u},
               {"feed_forward_length", inner},
               {"attention.head_count", heads},
               {"attention.head_count_kv", 2u}};
  keys[sample.isLayerNorm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"] =
      1e-5f;
  if (sample.hasRope)
    keys["rope.freq_base"] = theta;
  else
    keys.erase("attention.head_count_kv");
  return keys + sample.own;
}

GgufWriter fileOf(const Sample &sample, const Keys &keys) {
  GgufWriter file;
  file.string("general.architecture", sample.architecture);
  for (const auto &[name, value] : keys) {
    std::string key = sample.architecture + "." + name;
    if (auto *number = std::get_if<uint32_t>(&value))
      file.u32(key, *number);
    else if (auto *real = std::get_if<float>(&value))
      file.f32(key, *real);
    else if (auto *flag = std::get_if<bool>(&value))
      file.boolean(key, *flag);
    else
      file.string(key, std::get<std::string>(value));
  }
  file.floats("token_embd.weight", {64, hidden}, std::vector<float>(64 * hidden));
  for (const std::string &name : sample.vectors)
    file.floats(name, {4}, {1, 2, 3, 4});
  return file;
}

/// A number in the resulting model; for the last layer unless stated otherwise.
using Fact = double (*)(const ModelConfig &);

const AttentionConfig &attentionOf(const ModelConfig &config) {
  return config.layerTypes[config.layers.back()].attention;
}
const SparseConfig &expertsOf(const ModelConfig &config) {
  return std::get<SparseConfig>(config.layerTypes[config.layers.back()].ffn);
}
template <typename Scaling> const Scaling &scalingOf(const ModelConfig &config) {
  return std::get<Scaling>(attentionOf(config).rope.scaling);
}

double thetaOf(const ModelConfig &config) { return attentionOf(config).rope.theta; }
double firstThetaOf(const ModelConfig &config) { return config.layerTypes[0].attention.rope.theta; }
double rotaryDimOf(const ModelConfig &config) {
  return static_cast<double>(attentionOf(config).rope.dimensions);
}
double kvHeadsOf(const ModelConfig &config) {
  return static_cast<double>(attentionOf(config).kvHeads);
}
double headDimOf(const ModelConfig &config) {
  return static_cast<double>(attentionOf(config).headDim);
}
/// Of the first layer; 0 for none.
double windowOf(const ModelConfig &config) {
  return static_cast<double>(config.layerTypes[0].attention.window.value_or(0));
}
/// The number of layers before the first one without a window.
double firstWithoutWindow(const ModelConfig &config) {
  double layers = 0;
  for (unsigned kind : config.layers) {
    if (!config.layerTypes[kind].attention.window)
      return layers;
    ++layers;
  }
  return layers;
}
double softcapOf(const ModelConfig &config) { return attentionOf(config).softcap.value_or(0); }
double logitSoftcapOf(const ModelConfig &config) { return config.logitSoftcap.value_or(0); }
double embeddingScaleOf(const ModelConfig &config) { return config.embeddingMultiplier; }
double residualScaleOf(const ModelConfig &config) { return config.block.residualMultiplier; }
double isParallel(const ModelConfig &config) { return config.block.parallel != Parallel::No; }
double normalizes(const ModelConfig &config) { return expertsOf(config).normalize; }
double expertMultiplierOf(const ModelConfig &config) { return expertsOf(config).multiplier; }
double groupsOf(const ModelConfig &config) { return static_cast<double>(expertsOf(config).groups); }
double isSigmoid(const ModelConfig &config) {
  return expertsOf(config).scoring == Scoring::Sigmoid;
}
double expertInnerOf(const ModelConfig &config) {
  return static_cast<double>(expertsOf(config).expert.inner);
}
double sharedInnerOf(const ModelConfig &config) {
  return static_cast<double>(expertsOf(config).shared.inner);
}
double queryRankOf(const ModelConfig &config) {
  return static_cast<double>(attentionOf(config).latent->queryRank);
}
double yarnOriginalOf(const ModelConfig &config) {
  return static_cast<double>(scalingOf<YarnScaling>(config).original);
}
double yarnAttentionOf(const ModelConfig &config) {
  return scalingOf<YarnScaling>(config).attentionFactor;
}
double betaFastOf(const ModelConfig &config) { return scalingOf<YarnScaling>(config).betaFast; }
double betaSlowOf(const ModelConfig &config) { return scalingOf<YarnScaling>(config).betaSlow; }
double scoreMultiplierOf(const ModelConfig &config) {
  return attentionOf(config).rope.scoreMultiplier;
}
double longOriginalOf(const ModelConfig &config) {
  return static_cast<double>(scalingOf<LongRopeScaling>(config).original);
}
double longAttentionOf(const ModelConfig &config) {
  return scalingOf<LongRopeScaling>(config).attentionFactor;
}
double isUnscaled(const ModelConfig &config) {
  return std::holds_alternative<std::monostate>(attentionOf(config).rope.scaling);
}

double scaleOf(const ModelConfig &config) { return attentionOf(config).scale; }
double logitScaleOf(const ModelConfig &config) { return config.logitMultiplier; }
/// How many layers precede the first one with attention.
double firstAttention(const ModelConfig &config) {
  double layers = 0;
  for (unsigned kind : config.layers) {
    if (config.layerTypes[kind].hasAttention())
      return layers;
    ++layers;
  }
  return layers;
}
double valueDimOf(const ModelConfig &config) {
  return static_cast<double>(config.layerTypes[0].mixer<DeltaNetConfig>()->valueDim);
}
double layersOf(const ModelConfig &config) { return static_cast<double>(config.layers.size()); }

struct Row {
  const char *sample, *key;
  std::optional<Value> value; ///< nothing if the file does not have the key
  Fact fact = nullptr;
  double expected = 0;
  std::string error = ""; ///< the end of the error, instead of a value
};

Row absent(const char *sample, const char *key, Fact fact, double expected) {
  return {sample, key, std::nullopt, fact, expected};
}
Row given(const char *sample, const char *key, Value value, Fact fact, double expected) {
  return {sample, key, std::move(value), fact, expected};
}
Row required(const char *sample, const char *key, const char *why) {
  const std::string &architecture = samples.at(sample).architecture;
  return {sample,  key, std::nullopt,
          nullptr, 0,   "m.gguf: has no key \"" + architecture + "." + key + "\", " + why};
}
Row required(const char *sample, const char *key) {
  std::string why = "which " + samples.at(sample).architecture + " needs; download it again";
  return required(sample, key, why.c_str());
}
Row refused(const char *sample, const char *key, Value value, const char *shown,
            const char *expected) {
  const std::string &architecture = samples.at(sample).architecture;
  return {sample,
          key,
          std::move(value),
          nullptr,
          0,
          "m.gguf: has \"" + architecture + "." + key + "\": " + shown + ", expected " + expected};
}

constexpr auto otherConverter = "so the expert groups of this model cannot be determined; "
                                "use a file written by a newer converter";

std::vector<Row> rows() {
  constexpr auto only1 = [](const char *type) {
    return std::string("one of [1] with rope scaling type ") + type + "; choose a model without it";
  };
  static const std::string besideNone = only1("none"), besideLinear = only1("linear"),
                           besideYarn = only1("yarn");
  return {
      // Sizes, norms and rope.
      absent("llama", "attention.head_count_kv", kvHeadsOf, heads),
      absent("llama", "attention.key_length", headDimOf, 8),
      absent("llama", "rope.freq_base", thetaOf, 1e4),
      required("llama", "attention.layer_norm_rms_epsilon"),
      required("llama", "context_length"),
      absent("llama with experts", "rope.freq_base", thetaOf, 1e4),              // and not 1e6
      absent("llama with experts", "attention.head_count_kv", kvHeadsOf, heads), // and not 8
      absent("command-r", "rope.freq_base", thetaOf, 1e4),                       // and not 5e5
      required("command-r", "logit_scale"),
      absent("gemma", "attention.key_length", headDimOf, 8), // and not 256
      absent("gemma2", "attention.sliding_window", windowOf, 4096),
      absent("gemma2", "attn_logit_softcapping", softcapOf, 50),
      absent("gemma2", "final_logit_softcapping", logitSoftcapOf, 30),
      required("gemma3", "attention.sliding_window"),
      absent("gemma3", "attention.sliding_window_pattern", firstWithoutWindow, 5),
      required("gemma3", "rope.freq_base"),
      absent("gemma3", "rope.freq_base_swa", firstThetaOf, 1e4),
      absent("gemma3", "final_logit_softcapping", logitSoftcapOf, 0),
      required("glm4", "rope.dimension_count"),
      required("gpt2", "attention.layer_norm_epsilon"),
      required("gptneox", "attention.layer_norm_epsilon"),
      required("gptneox", "rope.dimension_count"),
      required("gptneox", "use_parallel_residual"),
      required("granite", "attention.scale"),
      required("granite", "logit_scale"),
      absent("granite", "embedding_scale", embeddingScaleOf, 1),
      absent("granite", "residual_scale", residualScaleOf, 1),
      // States.
      required("mamba2", "ssm.conv_kernel"),
      required("mamba2", "ssm.inner_size"),
      required("mamba2", "ssm.state_size"),
      required("mamba2", "ssm.time_step_rank"),
      required("mamba2", "ssm.group_count"),
      refused("mamba2", "attention.head_count", 4u, "4",
              "one of [0] (nothing else is supported); choose a model without it"),
      required("falcon-h1", "ssm.inner_size"), // and not what transformers has
      absent("falcon-h1", "rope.freq_base", thetaOf, 1e4),
      absent("granitehybrid", "attention.scale", scaleOf, 1 / std::sqrt(8)), // and not 1
      absent("granitehybrid", "embedding_scale", embeddingScaleOf, 1),
      absent("granitehybrid", "residual_scale", residualScaleOf, 1),
      absent("granitehybrid", "logit_scale", logitScaleOf, 1),
      absent("granitehybrid", "rope.scaling.finetuned", rotaryDimOf, 8),
      required("granitehybrid", "attention.head_count_kv"),
      given("granitehybrid", "rope.dimension_count", 4u, rotaryDimOf, 0),
      {"granitehybrid with experts", "expert_shared_feed_forward_length", std::nullopt, nullptr, 0,
       "m.gguf: has no key \"granitehybrid.expert_shared_feed_forward_length\", which "
       "granitehybrid "
       "needs; download it again"},
      required("bamba", "rope.dimension_count"),
      absent("bamba", "rope.freq_base", thetaOf, 1e4),
      refused("bamba", "rope.dimension_count", 8u, "8",
              "4, half of a head; choose a model without it"),
      refused("bamba", "rope.scaling.finetuned", false, "false",
              "one of [true] (nothing else is supported); choose a model without it"),
      {"bamba", "logit_scale", 2.f, nullptr, 0, // is Granite's, which rotates whole heads
       "m.gguf: has \"granitehybrid.rope.dimension_count\": 4, expected 8 (nothing else is "
       "supported); choose a model without it"},
      required("nemotron_h", "attention.layer_norm_epsilon"),
      absent("nemotron_h", "nextn_predict_layers", layersOf, 2),
      required("nemotron_h", "feed_forward_length",
               "which determines the types of its layers; download it again"),
      given("nemotron_h", "feed_forward_length", 0u, firstAttention, 0),
      {"nemotron_h", "attention.layer_norm_rms_epsilon", 1e-3f, nullptr, 0,
       "m.gguf: has \"nemotron_h.attention.layer_norm_rms_epsilon\": 0.001, which contradicts "
       "\"nemotron_h.attention.layer_norm_epsilon\"; keep one of them"},
      {"nemotron_h_moe", "expert_feed_forward_length", std::nullopt, nullptr, 0,
       "m.gguf: has no key \"nemotron_h_moe.expert_feed_forward_length\", which experts need; "
       "download it again"},
      {"nemotron_h_moe", "expert_shared_feed_forward_length", std::nullopt, nullptr, 0,
       "m.gguf: has no key \"nemotron_h_moe.expert_shared_feed_forward_length\", which experts "
       "need; download it again"},
      absent("nemotron_h_moe", "expert_weights_norm", normalizes, 0), // and not true
      absent("nemotron_h_moe", "expert_weights_scale", expertMultiplierOf, 1),
      absent("nemotron_h_moe", "expert_group_count", groupsOf, 0),
      required("nemotron_h_moe", "expert_group_used_count", otherConverter),
      refused("nemotron_h_moe", "expert_gating_func", 1u, "1",
              "one of [2] (nothing else is supported); choose a model without it"),
      {"qwen3next with one size", "feed_forward_length", std::nullopt, nullptr, 0,
       "m.gguf: has no key \"qwen3next.feed_forward_length\", which determines the sizes of its "
       "experts; download it again"},
      absent("qwen35", "full_attention_interval", firstAttention, 3),
      given("qwen35", "attention.recurrent_layers", false, firstAttention, 0),
      given("qwen35", "attention.recurrent_layers", true, firstAttention, 8),
      refused("qwen35", "attention.recurrent_layers", 1u, "1",
              "true or false for each of 8 layers; correct it"),
      required("qwen35", "rope.dimension_count"),
      required("qwen35", "ssm.inner_size", "which gated delta nets need; download it again"),
      given("qwen35", "ssm.inner_size", 12u, valueDimOf, 3),
      refused("qwen35", "ssm.inner_size", 30u, "30", "a multiple of its 4 heads; correct it"),
      given("qwen35", "nextn_predict_layers", 1u, layersOf, 7),
      refused("qwen35", "nextn_predict_layers", 8u, "8", "fewer than its 8 layers; correct it"),
      required("qwen35", "rope.dimension_sections",
               "which rope in Qwen3.5 needs; download it again"),
      required("qwen35moe", "rope.dimension_sections",
               "which rope in Qwen3.5 needs; download it again"),
      refused("qwen35", "rope.dimension_sections", 1u, "1",
              "sections that every pair of a head is in; choose a model without it"),
      given("qwen35", "rope.dimension_sections", 0u, rotaryDimOf, 8),
      absent("qwen3next", "expert_feed_forward_length", expertInnerOf, inner / 2),
      absent("qwen3next", "expert_shared_feed_forward_length", sharedInnerOf, inner),
      refused("qwen35moe", "expert_weights_norm", false, "false",
              "one of [true] (nothing else is supported); choose a model without it"),
      required("lfm2", "attention.head_count_kv"),
      required("lfm2", "shortconv.l_cache"),
      required("lfm2", "rope.freq_base"), // 1e4, or 1e6
      absent("phi3", "attention.sliding_window", windowOf, 0),
      absent("phi3", "rope.dimension_count", rotaryDimOf, 8),
      required("qwen3", "attention.layer_norm_rms_epsilon"),
      required("stablelm", "rope.dimension_count"),
      absent("stablelm", "use_parallel_residual", isParallel, 0),
      absent("starcoder2", "attention.sliding_window", windowOf, 0),

      // Experts.
      absent("deepseek", "expert_weights_norm", normalizes, 0),
      required("deepseek", "leading_dense_block_count"),
      absent("deepseek2 with yarn", "expert_gating_func", isSigmoid, 0),
      absent("deepseek2 of V2", "attention.q_lora_rank", queryRankOf, 0), // and not 1536
      absent("deepseek2 of V2", "expert_group_count", groupsOf, 0),
      required("deepseek2 of V2", "expert_group_used_count", otherConverter),
      required("deepseek2 of V2", "expert_weights_scale"),
      absent("deepseek2 of V2", "rope.freq_base", thetaOf, 1e4),
      absent("deepseek2 of V3", "expert_weights_norm", normalizes, 0), // and not true
      given("deepseek2 of V3", "expert_weights_norm", true, normalizes, 1),
      given("deepseek2 of V3", "expert_weights_norm", false, normalizes, 0),
      required("deepseek2 of V3", "expert_group_count", otherConverter),
      required("deepseek2 of V3", "expert_group_used_count", otherConverter),
      required("deepseek2 of V3", "expert_weights_scale"),
      required("gpt-oss", "attention.sliding_window"),
      required("gpt-oss", "rope.freq_base"),
      required("lfm2moe", "leading_dense_block_count"),
      required("lfm2moe", "expert_feed_forward_length"),
      absent("lfm2moe", "expert_weights_scale", expertMultiplierOf, 1),
      refused("lfm2moe", "expert_weights_norm", false, "false",
              "one of [true] (nothing else is supported); choose a model without it"),
      refused("lfm2moe", "expert_gating_func", 1u, "1",
              "one of [2] (nothing else is supported); choose a model without it"),
      absent("qwen2moe", "expert_weights_norm", normalizes, 0),
      absent("qwen2moe", "expert_feed_forward_length", expertInnerOf, inner / 2),
      absent("qwen2moe", "expert_shared_feed_forward_length", sharedInnerOf, inner),
      absent("qwen3moe", "expert_weights_norm", normalizes, 1),
      absent("qwen3moe", "expert_feed_forward_length", expertInnerOf, inner / 2),

      // The factor of sines, which llama.cpp applies to every type.
      refused("llama", "rope.scaling.attn_factor", 2.f, "2", besideNone.c_str()),
      refused("glm4", "rope.scaling.attn_factor", 2.f, "2", besideNone.c_str()),
      refused("glm4 with linear", "rope.scaling.attn_factor", 2.f, "2", besideLinear.c_str()),
      refused("llama with yarn", "rope.scaling.attn_factor", 2.f, "2", besideYarn.c_str()),
      given("glm4", "rope.scaling.attn_factor", 1.f, isUnscaled, 1),
      given("llama with yarn", "rope.scaling.attn_factor", 1.f, yarnAttentionOf, 3),
      required("phi3 with longrope", "rope.scaling.attn_factor",
               "which a rope scaling of type longrope needs; download it again"),
      given("phi3 with longrope", "rope.scaling.attn_factor", 1.25f, longAttentionOf, 1.25),

      // The factor of frequencies, by which llama.cpp divides those of longrope as well.
      required("llama with linear", "rope.scaling.factor",
               "which this scaling needs; download it again"),
      required("llama with yarn", "rope.scaling.factor",
               "which a rope scaling of type yarn needs; download it again"),
      refused("phi3 with longrope", "rope.scaling.factor", 8.f, "8",
              "one of [0,1] with rope scaling type longrope; choose a model without it"),
      given("phi3 with longrope", "rope.scaling.factor", 1.f, longAttentionOf, 1.5),
      given("llama", "rope.scaling.factor", 0.f, isUnscaled, 1),

      // Other rope scalings.
      absent("llama with yarn", "rope.scaling.original_context_length", yarnOriginalOf, context),
      absent("llama with yarn", "rope.scaling.yarn_attn_factor", yarnAttentionOf,
             1 + 0.1 * std::log(4)),
      absent("llama with yarn", "rope.scaling.yarn_beta_fast", betaFastOf, 32),
      absent("llama with yarn", "rope.scaling.yarn_beta_slow", betaSlowOf, 1),
      absent("phi3 with longrope", "rope.scaling.original_context_length", longOriginalOf, context),
      required("deepseek2 with yarn", "rope.scaling.yarn_log_multiplier",
               "which a rope scaling of type yarn needs; download it again"),
      refused("deepseek2 with yarn", "rope.scaling.yarn_log_multiplier", 0.f, "0",
              "a number from 1e-06 to 100; correct it"),
      given("deepseek2 with yarn", "rope.scaling.yarn_log_multiplier", 0.1f, scoreMultiplierOf,
            std::pow(1 + 0.1 * std::log(4), 2)),

      // Granite's flag for rope.
      refused("granite", "rope.scaling.finetuned", false, "false",
              "one of [true] (nothing else is supported); choose a model without it"),
      given("llama", "rope.scaling.finetuned", false, isUnscaled, 1),
  };
}

class GgufDefaults : public testing::Test {
protected:
  llvm::Expected<ModelConfig> read(const Sample &sample, const Keys &keys) {
    model.emplace(
        llvm::cantFail(GgufModel::open(folder.write("m.gguf", fileOf(sample, keys).bytes()))));
    return readGgufConfig(*model);
  }

  TestFolder folder;
  std::optional<GgufModel> model;
};

TEST_F(GgufDefaults, SamplesAreWhole) {
  for (const auto &[name, sample] : samples)
    EXPECT_EQ(messageOf(read(sample, keysOf(sample))), "") << name;
}

TEST_F(GgufDefaults, AreThoseOfLlamaCppOrTheKeyIsRequired) {
  for (const Row &row : rows()) {
    SCOPED_TRACE(std::string(row.sample) + ", " + row.key + (row.value ? " given" : " absent"));
    const Sample &sample = samples.at(row.sample);
    Keys keys = keysOf(sample);
    if (row.value) {
      keys.insert_or_assign(row.key, *row.value);
    } else {
      if (row.fact)
        EXPECT_GT(std::abs(row.fact(llvm::cantFail(read(sample, keys))) - row.expected), 1e-6)
            << "the sample says what is taken without it";
      EXPECT_EQ(keys.erase(row.key), 1u);
    }
    auto config = read(sample, keys);
    if (!row.fact) {
      EXPECT_THAT(messageOf(std::move(config)), testing::EndsWith(row.error));
      continue;
    }
    if (!config)
      ADD_FAILURE() << messageOf(std::move(config));
    else
      EXPECT_NEAR(row.fact(*config), row.expected, 1e-6 * std::abs(row.expected));
  }
}

} // namespace
