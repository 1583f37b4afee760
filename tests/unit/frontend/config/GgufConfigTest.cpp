#include "frontend/config/gguf/GgufConfig.h"

#include "tests/unit/frontend/GgufWriter.h"
#include "tests/unit/frontend/TestFolder.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

/// The keys of a small model.
GgufWriter keysOf(const std::string &architecture, uint32_t kvHeads = 2) {
  GgufWriter file;
  std::string own = architecture + ".";
  file.string("general.architecture", architecture).string("general.name", "small");
  file.u32(own + "context_length", 128).u32(own + "embedding_length", 32);
  file.u32(own + "block_count", 2).u32(own + "feed_forward_length", 64);
  file.u32(own + "attention.head_count", 4).u32(own + "attention.head_count_kv", kvHeads);
  bool isLayerNorm = architecture == "stablelm" || architecture == "gptneox";
  file.f32(own +
               (isLayerNorm ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon"),
           1e-5f);
  file.f32(own + "rope.freq_base", 1e4f);
  if (architecture == "qwen3moe")
    file.u32(own + "expert_count", 4).u32(own + "expert_used_count", 2);
  file.floats("token_embd.weight", {64, 32}, std::vector<float>(64 * 32));
  return file;
}

class GgufConfig : public testing::Test {
protected:
  llvm::Expected<ModelConfig> read() {
    model.emplace(llvm::cantFail(GgufModel::open(folder.write("m.gguf", file.bytes()))));
    return readGgufConfig(*model);
  }
  std::string problem() { return messageOf(read()); }

  TestFolder folder;
  GgufWriter file = keysOf("llama");
  std::optional<GgufModel> model;
};

TEST_F(GgufConfig, NamesKeysOfShapes) {
  file.u32("tokenizer.ggml.bos_token_id", 1).u32("tokenizer.ggml.eos_token_id", 2);
  file.u32("tokenizer.ggml.eot_token_id", 5).u32("tokenizer.ggml.eom_token_id", 2);
  file.f32("general.sampling.temp", 0.6f).u32("general.sampling.top_k", 20);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->family, "llama");
  EXPECT_EQ(config->vocab, 64) << "the embedding's rows";
  EXPECT_TRUE(config->tiedHead) << "there is no output.weight";
  EXPECT_EQ(config->norm.eps, 1e-5);
  EXPECT_EQ(config->layerTypes[0].attention.rope.pairing, Pairing::Interleaved);
  EXPECT_EQ(config->generation.bos, 1);
  EXPECT_THAT(config->generation.eos, testing::ElementsAre(2, 5));
  EXPECT_EQ(config->generation.temperature, 0.6);
  EXPECT_EQ(config->generation.topK, 20);
  EXPECT_EQ(config->generation.doSample, true);
  EXPECT_EQ(config->generation.topP, 0.95) << "as llama.cpp has it";
  EXPECT_EQ(config->generation.minP, 0.05);
  EXPECT_FALSE(config->generation.repetitionPenalty);
  for (const IgnoredKey &key : config->ignored)
    EXPECT_NE(key.key, "general.architecture") << "it chose the family";
}

TEST_F(GgufConfig, NamesKeysOfExperts) {
  file = keysOf("qwen3moe");
  file.u32("qwen3moe.expert_feed_forward_length", 16);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->layerTypes[0].attention.rope.pairing, Pairing::Half);
  auto &sparse = std::get<SparseConfig>(config->layerTypes[0].ffn);
  EXPECT_EQ(sparse.experts, 4);
  EXPECT_EQ(sparse.expertsPerToken, 2);
  EXPECT_EQ(sparse.expert.inner, 16);
  EXPECT_TRUE(sparse.normalize) << "as the architecture does by itself";
}

TEST_F(GgufConfig, LlamaWithExpertsIsMixtral) {
  file.u32("llama.expert_count", 4).u32("llama.expert_used_count", 2);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->family, "mixtral");
  EXPECT_EQ(config->layerTypes[0].attention.rope.pairing, Pairing::Interleaved);
}

TEST_F(GgufConfig, GemmaNormWeightsIncludeTheOffset) {
  file = keysOf("gemma2");
  file.u32("gemma2.attention.key_length", 16).u32("gemma2.attention.sliding_window", 8);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->norm.weightOffset, 0) << "one was added to them";
  EXPECT_EQ(config->layerTypes[0].attention.scale, 0.25)
      << "of the head, whatever the family's default";
}

TEST_F(GgufConfig, Gemma4HasOtherHeadsWithoutAWindow) {
  file = keysOf("gemma4");
  file.u32("gemma4.attention.key_length", 16).u32("gemma4.attention.key_length_swa", 8);
  file.u32("gemma4.attention.sliding_window", 8).f32("gemma4.rope.freq_base_swa", 100);
  file.u32("gemma4.embedding_length_per_layer_input", 0);
  EXPECT_THAT(problem(), HasSubstr("has no key \"gemma4.attention.sliding_window_pattern\", which "
                                   "layers with a window need"));
  file.list<uint8_t>("gemma4.attention.sliding_window_pattern", GgufKind::Bool, {1, 0});
  EXPECT_THAT(problem(), HasSubstr("has no tensor \"rope_freqs.weight\", which layers without a "
                                   "window need"));
  GgufWriter whole = file;
  constexpr float none = 1e30f;
  file.floats("rope_freqs.weight", {8}, {1, 1, 2, none, none, none, none, none});
  EXPECT_THAT(problem(), HasSubstr("contains other rope factors than ones followed by 1e30"));
  file = whole;
  file.floats("rope_freqs.weight", {8}, {1, 1, none, none, none, none, none, none});
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->layerTypes[0].attention.headDim, 8);
  EXPECT_EQ(config->layerTypes[0].attention.rope.theta, 100);
  EXPECT_EQ(config->layerTypes[1].attention.headDim, 16);
  EXPECT_TRUE(config->layerTypes[1].attention.valuesAreKeys) << "there is no attn_v";
  auto &scaling = std::get<ProportionalScaling>(config->layerTypes[1].attention.rope.scaling);
  EXPECT_EQ(scaling.pairs, 2);
}

TEST_F(GgufConfig, DeepSeekV1IsLaidOutLikeLlama) {
  file = keysOf("deepseek", 4);
  file.u32("deepseek.expert_count", 4).u32("deepseek.expert_used_count", 2);
  file.u32("deepseek.expert_shared_count", 2).u32("deepseek.expert_feed_forward_length", 16);
  file.u32("deepseek.leading_dense_block_count", 1).f32("deepseek.expert_weights_scale", 1);
  file.string("deepseek.rope.scaling.type", "none").u32("deepseek.rope.dimension_count", 8);
  GgufWriter whole = file;
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->family, "deepseek");
  EXPECT_EQ(config->layerTypes[0].attention.rope.pairing, Pairing::Interleaved);
  EXPECT_TRUE(std::holds_alternative<DenseConfig>(config->layerTypes[0].ffn));
  auto &sparse = std::get<SparseConfig>(config->layerTypes[1].ffn);
  EXPECT_EQ(sparse.shared.inner, 32) << "one network of both";
  EXPECT_FALSE(sparse.normalize);

  file = whole;
  file.boolean("deepseek.expert_weights_norm", true);
  auto normalized = read();
  ASSERT_TRUE(bool(normalized)) << messageOf(std::move(normalized));
  EXPECT_TRUE(std::get<SparseConfig>(normalized->layerTypes[1].ffn).normalize);

  file = whole;
  file.u32("deepseek.expert_gating_func", 2);
  EXPECT_THAT(problem(),
              testing::EndsWith("m.gguf: has \"deepseek.expert_gating_func\": 2, expected "
                                "one of [1] (nothing else is supported); choose a model "
                                "without it"));
}

TEST_F(GgufConfig, GptNeoXReadsTheRotaryDimension) {
  GgufWriter whole;
  whole.string("general.architecture", "gptneox").u32("gptneox.context_length", 64);
  whole.u32("gptneox.embedding_length", 32).u32("gptneox.block_count", 1);
  whole.u32("gptneox.attention.head_count", 4).u32("gptneox.feed_forward_length", 96);
  whole.f32("gptneox.attention.layer_norm_epsilon", 1e-5f);
  whole.floats("token_embd.weight", {64, 32}, std::vector<float>(64 * 32));
  whole.floats("blk.0.attn_qkv.bias", {96}, std::vector<float>(96));
  for (uint32_t rotated : {2, 4, 8}) {
    file = whole;
    file.u32("gptneox.rope.dimension_count", rotated);
    file.boolean("gptneox.use_parallel_residual", rotated != 4);
    auto config = read();
    ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
    EXPECT_EQ(config->family, "gpt_neox");
    EXPECT_EQ(config->layerTypes[0].attention.rope.dimensions, rotated);
    EXPECT_TRUE(config->layerTypes[0].attention.qkvBias);
    EXPECT_EQ(config->block.parallel, rotated == 4 ? Parallel::No : Parallel::OwnNorms);
    EXPECT_EQ(config->names->qkvOrder, QkvOrder::Consecutive) << "the converter sorted it";
  }
  file = whole;
  file.boolean("gptneox.use_parallel_residual", true).u32("gptneox.rope.dimension_count", 3);
  EXPECT_THAT(problem(), HasSubstr("rotates 3 of 8 elements of a head by its "
                                   "\"gptneox.rope.dimension_count\", but rope rotates pairs"));
  file = whole;
  file.boolean("gptneox.use_parallel_residual", true).u32("gptneox.rope.dimension_count", 10);
  EXPECT_THAT(problem(), HasSubstr("rotates 10 of 8 elements of a head"));
  file = whole;
  file.boolean("gptneox.use_parallel_residual", true);
  EXPECT_THAT(problem(), HasSubstr("has no key \"gptneox.rope.dimension_count\", which gptneox "
                                   "needs; download it again"));
}

TEST_F(GgufConfig, StableLmMayRotateFullHeads) {
  file = keysOf("stablelm");
  file.u32("stablelm.rope.dimension_count", 8);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->layerTypes[0].attention.rope.dimensions, 8) << "and no quarter";
}

/// A small model of the architecture of DeepSeek's second and third generation.
GgufWriter latentKeys() {
  GgufWriter file = keysOf("deepseek2", 4);
  file.u32("deepseek2.expert_count", 4).u32("deepseek2.expert_used_count", 2);
  file.u32("deepseek2.expert_shared_count", 1).u32("deepseek2.expert_feed_forward_length", 16);
  file.u32("deepseek2.leading_dense_block_count", 1).u32("deepseek2.attention.kv_lora_rank", 12);
  file.u32("deepseek2.rope.dimension_count", 4).f32("deepseek2.expert_weights_scale", 2);
  return file;
}

TEST_F(GgufConfig, HeadsOfLatentsAreExpandedOrCompressed) {
  file = latentKeys();
  GgufWriter common = file;
  file.u32("deepseek2.attention.key_length", 10).u32("deepseek2.attention.value_length", 6);
  auto made = read();
  ASSERT_TRUE(bool(made)) << messageOf(std::move(made));
  EXPECT_EQ(made->family, "deepseek_v2");
  EXPECT_EQ(made->layerTypes[0].attention.latent->qkNopeHeadDim, 6);
  EXPECT_EQ(made->layerTypes[0].attention.latent->queryRank, 0);
  EXPECT_EQ(made->layerTypes[0].attention.valueDim, 6);
  EXPECT_EQ(std::get<SparseConfig>(made->layerTypes[1].ffn).groups, 0);
  EXPECT_TRUE(made->names->latentUpKeys.empty());

  file = common;
  file.u32("deepseek2.attention.key_length", 16).u32("deepseek2.attention.key_length_mla", 10);
  file.u32("deepseek2.attention.value_length", 12).u32("deepseek2.attention.value_length_mla", 6);
  file.u32("deepseek2.expert_group_count", 2).u32("deepseek2.expert_group_used_count", 1);
  file.u32("deepseek2.expert_gating_func", 2).u32("deepseek2.attention.q_lora_rank", 8);
  file.floats("blk.0.attn_k_b.weight", {4, 12, 6}, std::vector<float>(4 * 12 * 6));
  GgufWriter kept = file;
  auto later = read();
  ASSERT_TRUE(bool(later)) << messageOf(std::move(later));
  EXPECT_EQ(later->family, "deepseek_v3") << "experts are scored by sigmoids";
  EXPECT_EQ(later->layerTypes[0].attention.latent->qkNopeHeadDim, 6);
  EXPECT_EQ(later->layerTypes[0].attention.latent->queryRank, 8);
  EXPECT_EQ(std::get<SparseConfig>(later->layerTypes[1].ffn).groups, 2);
  EXPECT_EQ(std::get<SparseConfig>(later->layerTypes[1].ffn).multiplier, 2);
  EXPECT_EQ(later->names->latentUpKeys, "self_attn.k_b_proj");

  file = common;
  file.u32("deepseek2.attention.key_length", 15).u32("deepseek2.attention.key_length_mla", 10);
  file.u32("deepseek2.attention.value_length", 6);
  EXPECT_THAT(problem(), HasSubstr("has \"deepseek2.attention.key_length\": 15, expected 10"));

  file = common;
  EXPECT_THAT(problem(), HasSubstr("has no key \"deepseek2.attention.key_length\", which deepseek2 "
                                   "needs"));
  file.u32("deepseek2.attention.key_length", 4).u32("deepseek2.attention.value_length", 6);
  EXPECT_THAT(problem(), HasSubstr("has heads of 4 elements and "
                                   "\"deepseek2.rope.dimension_count\": 4, which leaves no "
                                   "elements without rope"));
}

/// llama.cpp applies it, the family does not.
TEST_F(GgufConfig, WeightsOfSoftmaxScoredExpertsStayAsTheyAre) {
  auto problemWith = [&](bool isNormalized, uint32_t scoring) {
    file = latentKeys();
    file.u32("deepseek2.attention.key_length", 10).u32("deepseek2.attention.value_length", 6);
    file.u32("deepseek2.expert_gating_func", scoring).u32("deepseek2.expert_group_count", 1);
    file.u32("deepseek2.expert_group_used_count", 1);
    file.boolean("deepseek2.expert_weights_norm", isNormalized);
    return problem();
  };
  EXPECT_EQ(problemWith(false, 1), "");
  EXPECT_THAT(problemWith(true, 1),
              HasSubstr("has \"deepseek2.expert_weights_norm\": true, expected one of [false]"));
  EXPECT_EQ(problemWith(true, 2), "");
}

/// The first converters wrote no groups, even for models that have some.
TEST_F(GgufConfig, GroupsOfExpertsAreNotGuessed) {
  auto problemWith = [&](uint32_t experts, bool isSigmoid, std::optional<uint32_t> groups,
                         std::optional<uint32_t> kept) {
    file = latentKeys();
    std::string key = GgufWriter::raw("deepseek2.expert_count");
    file.metadata.replace(file.metadata.find(key) + key.size() + 4, 4, GgufWriter::raw(experts));
    file.u32("deepseek2.attention.key_length", 10).u32("deepseek2.attention.value_length", 6);
    file.u32("deepseek2.expert_gating_func", isSigmoid ? 2 : 1);
    if (groups)
      file.u32("deepseek2.expert_group_count", *groups);
    if (kept)
      file.u32("deepseek2.expert_group_used_count", *kept);
    return problem();
  };
  constexpr auto none = std::nullopt;
  std::string open = "m.gguf: has no key \"deepseek2.expert_group_count\", so the expert groups of "
                     "this model cannot be determined; use a file written by a newer converter";
  auto endsAs = [](const std::string &message) { return testing::EndsWith(message); };
  EXPECT_EQ(problemWith(64, false, none, none), "") << "V2-Lite";
  EXPECT_EQ(problemWith(64, false, 1, 1), "") << "V2-Lite of a newer converter";
  EXPECT_THAT(problemWith(160, false, none, none), endsAs(open)) << "V2";
  EXPECT_EQ(problemWith(160, false, 8, 3), "");
  EXPECT_THAT(problemWith(256, true, none, none), endsAs(open)) << "V3";
  EXPECT_THAT(problemWith(64, true, none, none), endsAs(open));
  EXPECT_THAT(problemWith(384, true, none, none), endsAs(open));
  EXPECT_EQ(problemWith(384, true, 1, 1), "");
  EXPECT_THAT(problemWith(160, false, 8, none),
              HasSubstr("has no key \"deepseek2.expert_group_used_count\""));
  EXPECT_THAT(problemWith(160, false, 8, 9),
              endsAs("m.gguf: keeps 9 of 8 groups of experts; correct "
                     "\"deepseek2.expert_group_used_count\" or \"deepseek2.expert_group_count\""));
}

TEST_F(GgufConfig, RowsOfTheNetworkFollowFromTheHiddenSize) {
  file = GgufWriter();
  file.string("general.architecture", "bloom").u32("bloom.context_length", 64);
  file.u32("bloom.embedding_length", 32).u32("bloom.block_count", 1);
  file.u32("bloom.attention.head_count", 4).u32("bloom.feed_forward_length", 96);
  file.f32("bloom.attention.layer_norm_epsilon", 1e-5f);
  file.floats("token_embd.weight", {64, 32}, std::vector<float>(64 * 32));
  EXPECT_THAT(problem(), HasSubstr("has \"bloom.feed_forward_length\": 96, expected 128"));
}

TEST_F(GgufConfig, YarnOfGptOssIsNotRounded) {
  file = keysOf("gpt-oss");
  file.u32("gpt-oss.expert_count", 4).u32("gpt-oss.expert_used_count", 2);
  file.u32("gpt-oss.attention.key_length", 8).u32("gpt-oss.attention.sliding_window", 16);
  GgufWriter plain = file;
  file.string("gpt-oss.rope.scaling.type", "yarn").f32("gpt-oss.rope.scaling.factor", 4);
  file.u32("gpt-oss.rope.scaling.original_context_length", 32);
  auto scaled = read();
  ASSERT_TRUE(bool(scaled)) << messageOf(std::move(scaled));
  auto scaling = scaled->layerTypes[0].attention.rope.scaling;
  EXPECT_FALSE(std::get<YarnScaling>(scaling).truncate);
  file = plain;
  auto unscaled = read();
  ASSERT_TRUE(bool(unscaled)) << messageOf(std::move(unscaled));
  scaling = unscaled->layerTypes[0].attention.rope.scaling;
  EXPECT_TRUE(std::holds_alternative<std::monostate>(scaling)) << "as the file says";
  EXPECT_TRUE(unscaled->layerTypes[0].attention.window) << "in every other layer";
  EXPECT_FALSE(unscaled->layerTypes[1].attention.window);
}

TEST_F(GgufConfig, RefusesArchitecturesWithoutAFamily) {
  file = keysOf("mamba");
  EXPECT_THAT(problem(),
              HasSubstr("has the architecture \"mamba\", which is unknown; choose a "
                        "model of one of the architectures bloom, command-r, deepseek, deepseek2, "
                        "falcon-h1, gemma"));
  file = GgufWriter().u32("general.architecture", 1);
  EXPECT_THAT(problem(), HasSubstr("has no key \"general.architecture\" with a name"));
}

TEST_F(GgufConfig, RefusesKeysByTheirOwnNames) {
  GgufWriter whole = file;
  file.u32("llama.new_trick", 1);
  EXPECT_THAT(problem(),
              HasSubstr("m.gguf: has the key \"llama.new_trick\", which is unknown for llama and "
                        "could change what the model computes; remove it if it does not"));
  file = whole;
  file.u32("xielu.alpha_n", 1);
  EXPECT_THAT(problem(),
              HasSubstr("has the key \"xielu.alpha_n\", which is unknown; remove it if it "
                        "has no effect"));
  file = whole;
  file.u32("llama.expert_used_count", 8);
  EXPECT_THAT(
      problem(),
      HasSubstr(
          "has \"llama.expert_used_count\": 8, expected one of [0] (nothing else is supported)"));
  file = whole;
  file.u32("llama.attention.sliding_window", 64);
  EXPECT_THAT(problem(), HasSubstr("has the key \"llama.attention.sliding_window\", which is "
                                   "unknown for llama and could change what the model computes"));
  file = whole;
  file.u32("llama.attention.value_length", 16);
  EXPECT_THAT(problem(), HasSubstr("has \"llama.attention.value_length\": 16, expected 8"));
  file = whole;
  file.u32("llama.rope.dimension_count", 4);
  EXPECT_THAT(problem(), HasSubstr("has \"llama.rope.dimension_count\": 4, expected 8"));
  file = whole;
  file.string("general.type", "adapter");
  EXPECT_THAT(problem(), HasSubstr("has \"general.type\": \"adapter\", expected \"model\""));
  file = whole;
  file.u32("general.quantization_version", 3);
  EXPECT_EQ(problem(), "") << "no tensor is in blocks";
  file.tensor("blk.0.attn_q.weight", {1, 32}, std::string(34, '\0'), 8);
  EXPECT_THAT(problem(), HasSubstr("has \"general.quantization_version\": 3, expected 2"));
  file = whole;
  file.f32("general.sampling.temp", -1);
  EXPECT_THAT(problem(), HasSubstr("has \"general.sampling.temp\": -1, expected a number"));
}

TEST_F(GgufConfig, LayersWithoutKeysHaveConvolutions) {
  auto withHeads = [&](std::vector<int32_t> heads) {
    file = GgufWriter();
    file.string("general.architecture", "lfm2");
    file.u32("lfm2.context_length", 128).u32("lfm2.embedding_length", 32);
    file.u32("lfm2.block_count", 4).u32("lfm2.feed_forward_length", 64);
    file.u32("lfm2.attention.head_count", 4).u32("lfm2.shortconv.l_cache", 3);
    file.list<int32_t>("lfm2.attention.head_count_kv", GgufKind::I32, heads);
    file.f32("lfm2.attention.layer_norm_rms_epsilon", 1e-5f).f32("lfm2.rope.freq_base", 1e6f);
    file.floats("token_embd.weight", {64, 32}, std::vector<float>(64 * 32));
  };
  withHeads({0, 2, 0, 2});
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->layers, (std::vector<unsigned>{0, 1, 0, 1}));
  ASSERT_TRUE(config->layerTypes[0].mixer<ShortConvConfig>());
  EXPECT_EQ(config->layerTypes[0].mixer<ShortConvConfig>()->taps, 3);
  EXPECT_FALSE(config->layerTypes[0].mixer<ShortConvConfig>()->bias);
  EXPECT_FALSE(config->layerTypes[1].mixer<ShortConvConfig>());
  EXPECT_EQ(config->layerTypes[1].attention.kvHeads, 2);
  EXPECT_EQ(std::get<DenseConfig>(config->layerTypes[0].ffn).inner, 64) << "as the file has it";
  withHeads({2, 2, 2, 2});
  EXPECT_EQ(problem(), "") << "all have attention";
  withHeads({0, 2, 0});
  EXPECT_THAT(problem(), HasSubstr("has 3 numbers of key/value heads for 4 layers"));
  withHeads({0, 2, 4, 0});
  EXPECT_THAT(problem(), HasSubstr("has layers with 2 and with 4 key/value heads, only one number "
                                   "is supported; choose"));
  withHeads({0, 2, -1, 0});
  EXPECT_THAT(problem(),
              HasSubstr("has \"lfm2.attention.head_count_kv\": -1, expected an integer"));
  withHeads({0, 2, 0, 2});
  file.u32("lfm2.attention.sliding_window", 16);
  EXPECT_THAT(problem(), HasSubstr("has the key \"lfm2.attention.sliding_window\""));
}

TEST_F(GgufConfig, BlocksWithoutKeysAndSizesAreMamba) {
  auto withBlocks = [&](const std::string &name, std::vector<int32_t> inners,
                        std::vector<int32_t> heads, uint32_t later = 0) {
    file = GgufWriter();
    std::string own = name + ".";
    file.string("general.architecture", name);
    file.u32(own + "context_length", 128).u32(own + "embedding_length", 32);
    file.u32(own + "block_count", 4).u32(own + "nextn_predict_layers", later);
    file.u32(own + "attention.head_count", 4).f32(own + "attention.layer_norm_epsilon", 1e-5f);
    file.list<int32_t>(own + "feed_forward_length", GgufKind::I32, inners);
    file.list<int32_t>(own + "attention.head_count_kv", GgufKind::I32, heads);
    file.u32(own + "ssm.conv_kernel", 4).u32(own + "ssm.inner_size", 48);
    file.u32(own + "ssm.state_size", 10).u32(own + "ssm.time_step_rank", 6);
    file.u32(own + "ssm.group_count", 2);
    file.floats("token_embd.weight", {64, 32}, std::vector<float>(64 * 32));
  };
  withBlocks("nemotron_h", {40, 0, 0, 40}, {0, 0, 2, 0});
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->layers, (std::vector<unsigned>{0, 1, 2, 0}));
  EXPECT_EQ(std::get<DenseConfig>(config->layerTypes[0].ffn).inner, 40);
  EXPECT_FALSE(config->layerTypes[0].mixes);
  ASSERT_TRUE(config->layerTypes[1].mixer<MambaConfig>());
  EXPECT_EQ(config->layerTypes[1].mixer<MambaConfig>()->headDim, 8);
  EXPECT_EQ(config->layerTypes[2].attention.kvHeads, 2);
  EXPECT_EQ(config->layerTypes[2].attention.rope.dimensions, 0) << "without positions";
  withBlocks("nemotron_h", {40, 0, 0, 24}, {0, 0, 2, 0});
  EXPECT_THAT(problem(), HasSubstr("has \"nemotron_h.feed_forward_length\": [40,0,0,24], expected "
                                   "blocks of one size; choose a model without it"));
  withBlocks("nemotron_h", {40, 0, 0}, {0, 0, 2, 0});
  EXPECT_THAT(problem(), HasSubstr("has \"nemotron_h.feed_forward_length\": [40,0,0], expected a "
                                   "number for each of 4 layers"));
  withBlocks("nemotron_h", {40, 0, 0, 40}, {0, 2});
  EXPECT_THAT(problem(), HasSubstr("has \"nemotron_h.attention.head_count_kv\": [0,2], expected a "
                                   "number for each of 4 layers"));
  // The last layer predicts an additional token, with attention and experts.
  withBlocks("nemotron_h_moe", {0, 16, 0, 16}, {0, 0, 2, 2}, /*later=*/1);
  file.u32("nemotron_h_moe.expert_count", 4).u32("nemotron_h_moe.expert_used_count", 2);
  file.u32("nemotron_h_moe.expert_feed_forward_length", 16);
  file.u32("nemotron_h_moe.expert_shared_feed_forward_length", 24);
  config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_EQ(config->layers, (std::vector<unsigned>{0, 1, 2}));
  auto &sparse = std::get<SparseConfig>(config->layerTypes[1].ffn);
  EXPECT_EQ(sparse.expert.inner, 16);
  EXPECT_EQ(sparse.shared.inner, 24);
  EXPECT_EQ(sparse.scoring, Scoring::Sigmoid);
  EXPECT_FALSE(sparse.expert.gated);
  file.u32("nemotron_h_moe.expert_latent_length", 8);
  EXPECT_THAT(problem(), HasSubstr("has the key \"nemotron_h_moe.expert_latent_length\""));
}

TEST_F(GgufConfig, RefusesValuesByTheirOwnNames) {
  auto spoil = [&](const std::string &key, uint32_t value) {
    GgufWriter spoilt = keysOf("llama");
    size_t at = spoilt.metadata.find(GgufWriter::raw(key));
    EXPECT_NE(at, std::string::npos);
    spoilt.metadata.replace(at + 8 + key.size() + 4, 4, GgufWriter::raw(value));
    file = spoilt;
    return problem();
  };
  EXPECT_THAT(spoil("llama.block_count", 0),
              HasSubstr("has \"llama.block_count\": 0, expected an integer from 1 to 4096"));
  EXPECT_THAT(spoil("llama.attention.head_count_kv", 3),
              HasSubstr("not a multiple of its 3 key/value heads"));
  EXPECT_THAT(spoil("llama.attention.head_count", 6),
              HasSubstr("and no key \"llama.attention.key_length\"; add it"));
  file = keysOf("llama");
  file.entries = file.data = "";
  file.tensors = 0;
  EXPECT_THAT(problem(), HasSubstr("has no matrix \"token_embd.weight\""));
  file.floats("token_embd.weight", {0, 32}, {});
  EXPECT_THAT(problem(), HasSubstr("has 0 rows in \"token_embd.weight\", which no vocabulary has"));
  file = GgufWriter();
  file.string("general.architecture", "llama");
  EXPECT_THAT(problem(), HasSubstr("has no key \"llama.embedding_length\", which llama needs"));
  file = keysOf("llama");
  file.list<int32_t>("llama.attention.key_length", GgufKind::I32, {8, 4});
  EXPECT_THAT(problem(),
              HasSubstr("has \"llama.attention.key_length\": [8,4], expected an integer"));
  file = keysOf("llama");
  file.u32("tokenizer.ggml.eos_token_id", 64);
  EXPECT_THAT(problem(), HasSubstr("names the token 64 as BOS or EOS, but the vocabulary has 64; "
                                   "use an id of the vocabulary"));
}

TEST_F(GgufConfig, ReadsRopesScaling) {
  file.string("llama.rope.scaling.type", "none");
  EXPECT_EQ(problem(), "");
  file = keysOf("llama");
  file.f32("llama.rope.scale_linear", 1);
  EXPECT_EQ(problem(), "");
  file = keysOf("llama");
  file.f32("llama.rope.scale_linear", 4);
  auto linear = read();
  ASSERT_TRUE(bool(linear)) << messageOf(std::move(linear));
  auto scaling = linear->layerTypes[0].attention.rope.scaling;
  EXPECT_EQ(std::get<LinearScaling>(scaling).factor, 4);
}

TEST_F(GgufConfig, ReadsFactorsOfShortAndLongTexts) {
  GgufWriter whole = file;
  for (const char *type : {"", "longrope"}) {
    file = whole;
    if (*type)
      file.string("llama.rope.scaling.type", type);
    file.u32("llama.rope.scaling.original_context_length", 32);
    file.f32("llama.rope.scaling.attn_factor", 1.25);
    file.floats("rope_factors_short.weight", {4}, {1, 2, 3, 4});
    file.floats("rope_factors_long.weight", {4}, {5, 6, 7, 8});
    auto model = read();
    ASSERT_TRUE(bool(model)) << messageOf(std::move(model));
    auto scaling = std::get<LongRopeScaling>(model->layerTypes[0].attention.rope.scaling);
    EXPECT_EQ(scaling.shortFactors, (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(scaling.longFactors, (std::vector<double>{5, 6, 7, 8}));
    EXPECT_EQ(scaling.attentionFactor, 1.25);
    EXPECT_EQ(scaling.original, 32);
  }
  file = whole;
  file.u32("llama.rope.scaling.original_context_length", 32);
  EXPECT_EQ(problem(), "") << "said of every Phi-3";
  file = whole;
  file.f32("llama.rope.scaling.attn_factor", 1);
  file.floats("rope_factors_long.weight", {4}, {5, 6, 7, 8});
  EXPECT_THAT(problem(), HasSubstr("tensor \"rope_factors_long.weight\" scales rope, whose "
                                   "scaling is of type none"));
  file.string("llama.rope.scaling.type", "longrope");
  EXPECT_THAT(problem(), HasSubstr("has no tensor \"rope_factors_short.weight\", which a rope "
                                   "scaling of type longrope needs"));
}

TEST_F(GgufConfig, ReportsUnsupportedSampling) {
  GgufWriter whole = file;
  file.f32("general.sampling.temp", 0.5f).u32("general.sampling.mirostat", 2);
  file.f32("general.sampling.mirostat_tau", 4).f32("general.sampling.xtc_probability", 0.5f);
  file.u32("general.sampling.penalty_last_n", 64);
  file.string("general.sampling.sequence", "top_k;temperature").u32("general.sampling.magic", 1);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  std::vector<std::string> missed, others;
  for (const IgnoredKey &key : config->ignored)
    (key.missed ? missed : others).push_back(key.key + " " + key.reason);
  const std::string changes = " changes which tokens are chosen, but is ";
  const std::string unknown = " not a supported sampling setting";
  EXPECT_THAT(missed, testing::ElementsAre(
                          "general.sampling.mirostat" + changes + "only supported as --mirostat",
                          "general.sampling.penalty_last_n" + changes + "not supported",
                          "general.sampling.sequence" + changes + "not supported",
                          "general.sampling.xtc_probability" + changes +
                              "only supported as --xtc-probability"));
  EXPECT_THAT(others, testing::ElementsAre("general.name describes the origin of the file",
                                           "general.sampling.magic" + unknown,
                                           "general.sampling.mirostat_tau" + unknown));

  file = whole;
  file.u32("general.sampling.mirostat", 0).f32("general.sampling.xtc_probability", 0);
  file.value("general.sampling.penalty_last_n", GgufKind::I32, GgufWriter::raw<int32_t>(-1));
  auto neutral = read();
  ASSERT_TRUE(bool(neutral)) << messageOf(std::move(neutral));
  for (const IgnoredKey &key : neutral->ignored)
    EXPECT_FALSE(key.missed) << key.key;
  EXPECT_EQ(neutral->generation.temperature, 0.8);
  EXPECT_EQ(neutral->generation.topK, 40);
}

TEST_F(GgufConfig, ListsIgnoredKeys) {
  file = keysOf("qwen2");
  file.u32("qwen2.attention.sliding_window", 64).u32("qwen2.vocab_size", 64);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_FALSE(config->layerTypes[0].attention.window);
  std::vector<std::string> keys;
  for (const IgnoredKey &key : config->ignored)
    keys.push_back(key.key + " " + key.reason);
  EXPECT_THAT(keys,
              testing::ElementsAre("general.name describes the origin of the file",
                                   "qwen2.attention.sliding_window only applies with "
                                   "use_sliding_window, which such files do not have",
                                   "qwen2.vocab_size the rows of the embedding are used instead"));
}

TEST_F(GgufConfig, RopesParametersHaveTheirOwnNames) {
  GgufWriter whole = file;
  file.string("llama.rope.scaling.type", "linear");
  EXPECT_THAT(problem(), HasSubstr("m.gguf: has no key \"llama.rope.scaling.factor\", which this "
                                   "scaling needs; download it again"));
  file = whole;
  file.string("llama.rope.scaling.type", "yarn").f32("llama.rope.scaling.factor", 2);
  file.u32("llama.rope.scaling.original_context_length", 64);
  file.f32("llama.rope.scaling.yarn_beta_fast", 1).f32("llama.rope.scaling.yarn_beta_slow", 2);
  EXPECT_THAT(problem(), HasSubstr("has a \"llama.rope.scaling.yarn_beta_fast\" below its "
                                   "\"llama.rope.scaling.yarn_beta_slow\""));
  file = whole;
  file.f32("llama.rope.scaling.attn_factor", 1);
  file.floats("rope_factors_short.weight", {3}, {1, 2, 3});
  file.floats("rope_factors_long.weight", {4}, {5, 6, 7, 8});
  EXPECT_THAT(problem(), HasSubstr("has no list of 4 numbers in \"rope_factors_short.weight\""));
  file = latentKeys();
  file.u32("deepseek2.attention.key_length", 10).u32("deepseek2.attention.value_length", 6);
  file.string("deepseek2.rope.scaling.type", "yarn").f32("deepseek2.rope.scaling.factor", 2);
  file.u32("deepseek2.rope.scaling.original_context_length", 64);
  GgufWriter scaled = file;
  file.f32("deepseek2.rope.scaling.yarn_log_multiplier", 0.1f);
  auto config = read();
  ASSERT_TRUE(bool(config)) << messageOf(std::move(config));
  EXPECT_GT(config->layerTypes[0].attention.rope.scoreMultiplier, 1) << "mscale_all_dim is 1";
  file = scaled;
  file.f32("deepseek2.rope.scaling.yarn_log_multiplier", -1);
  EXPECT_THAT(problem(), HasSubstr("has \"deepseek2.rope.scaling.yarn_log_multiplier\": -1, "
                                   "expected a number from 1e-06 to 100"));
}

TEST_F(GgufConfig, PositionsWithoutRopeAreNotScaled) {
  file = GgufWriter();
  file.string("general.architecture", "gpt2").u32("gpt2.context_length", 64);
  file.u32("gpt2.embedding_length", 32).u32("gpt2.block_count", 1);
  file.u32("gpt2.attention.head_count", 4).f32("gpt2.attention.layer_norm_epsilon", 1e-5f);
  file.floats("token_embd.weight", {64, 32}, std::vector<float>(64 * 32));
  GgufWriter whole = file;
  file.string("gpt2.rope.scaling.type", "none");
  EXPECT_EQ(problem(), "");
  file = whole;
  file.string("gpt2.rope.scaling.type", "linear").f32("gpt2.rope.scaling.factor", 2);
  EXPECT_THAT(problem(), HasSubstr("has \"gpt2.rope.scaling.type\", but gpt2 has no rope"));
  file = whole;
  file.floats("rope_freqs.weight", {4}, {1, 1, 1, 8});
  EXPECT_THAT(problem(), HasSubstr("has \"rope_freqs.weight\", but gpt2 has no rope"));
  file = whole;
  file.f32("gpt2.rope.freq_base", 1e4f);
  EXPECT_THAT(problem(), HasSubstr("has the key \"gpt2.rope.freq_base\", which is unknown"));
}

TEST_F(GgufConfig, RefusesUnknownRope) {
  GgufWriter whole = file;
  file.string("llama.rope.scaling.type", "mrope");
  EXPECT_THAT(problem(), HasSubstr("has \"llama.rope.scaling.type\": \"mrope\", only none, linear, "
                                   "yarn and longrope are supported"));
  file = whole;
  file.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.yarn_beta_fast", 1);
  EXPECT_THAT(problem(),
              HasSubstr("has \"llama.rope.scaling.yarn_beta_fast\", which a rope scaling "
                        "of type linear does not have"));
  file = whole;
  file.f32("llama.rope.scaling.factor", 2).f32("llama.rope.scale_linear", 2);
  EXPECT_THAT(
      problem(),
      HasSubstr("has \"llama.rope.scale_linear\" in addition to another rope factor; keep one"));
  file = whole;
  file.string("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 0.5f);
  EXPECT_THAT(problem(), HasSubstr("has \"llama.rope.scaling.factor\": 0.5, expected a number"));
  file = whole;
  file.floats("rope_freqs.weight", {4}, {1, 3, 2, 9});
  EXPECT_THAT(problem(), HasSubstr("tensor \"rope_freqs.weight\" contains rope factors that differ "
                                   "from Llama 3's"));
  file = whole;
  file.floats("rope_freqs.weight", {4}, {1, 1, 1, 1});
  EXPECT_EQ(problem(), "") << "which scales nothing";
  file = whole;
  file.floats("rope_freqs.weight", {2, 2}, {1, 1, 1, 1});
  EXPECT_THAT(problem(), HasSubstr("must be an F32 vector of up to 2048 rope factors"));
  file = whole;
  file.floats("rope_freqs.weight", {4}, {1, 1, 1, 8}).f32("llama.rope.scaling.factor", 2);
  EXPECT_THAT(problem(), HasSubstr("scales rope, which its keys do as well"));
}

} // namespace
