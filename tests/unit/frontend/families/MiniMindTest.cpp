#include "tests/unit/frontend/config/ConfigText.h"

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

const std::set<std::string> tensors1 = {"tok_embeddings.weight"};
const std::set<std::string> tensors2 = {"model.embed_tokens.weight"};
const std::set<std::string> tensors3 = {"model.embed_tokens.weight",
                                        "model.layers.0.self_attn.q_norm.weight"};

ModelConfig read(llvm::StringRef base, llvm::StringRef changes = "{}",
                 const std::set<std::string> &tensors = {}) {
  auto model = configOf(base, changes, tensors);
  if (!model) {
    ADD_FAILURE() << messageOf(std::move(model));
    return {};
  }
  return std::move(*model);
}

TEST(MiniMind1, DescribesTheDecoder) {
  ModelConfig model = read(miniMind1Text);
  EXPECT_EQ(model.family, "minimind (generation 1)");
  EXPECT_TRUE(model.tiedHead);
  EXPECT_EQ(model.names, &metaNames);
  EXPECT_EQ(model.hidden, 512);
  EXPECT_EQ(model.maxPositions, 8192);
  EXPECT_EQ(model.norm.rounding, NormRounding::BeforeWeight);
  const AttentionConfig &a = model.layerTypes.at(0).attention;
  EXPECT_EQ(a.rope.pairing, Pairing::Interleaved);
  EXPECT_EQ(a.rope.theta, 1e6);
  EXPECT_EQ(std::get<DenseConfig>(model.layerTypes[0].ffn).inner, 1408)
      << "64 * ceil(int(2 * 4 * 512 / 3) / 64)";
}

TEST(MiniMind1, RoundsItsInnerSize) {
  auto innerOf = [](llvm::StringRef changes) {
    return std::get<DenseConfig>(read(miniMind1Text, changes).layerTypes.at(0).ffn).inner;
  };
  EXPECT_EQ(innerOf(R"({"multiple_of": 32})"), 1376);
  EXPECT_EQ(innerOf(R"({"hidden_dim": 100})"), 100);
}

TEST(MiniMind1, WithoutThetaUsesTheDefaultOf2024) {
  EXPECT_EQ(
      read(miniMind1Text, R"({"rope_theta": "absent"})").layerTypes.at(0).attention.rope.theta,
      1e4);
}

TEST(MiniMind1, HasOneSharedExpertUnlessNull) {
  auto sharedOf = [](llvm::StringRef value) {
    ModelConfig model =
        read(miniMind1Text,
             ("{\"use_moe\": true, \"n_routed_experts\": 4, \"n_shared_experts\": " + value + "}")
                 .str());
    return std::get<SparseConfig>(model.layerTypes.at(0).ffn).sharedExperts;
  };
  EXPECT_EQ(sharedOf("true"), 1);
  EXPECT_EQ(sharedOf("false"), 1);
  EXPECT_EQ(sharedOf("null"), 0);
  EXPECT_EQ(sharedOf("\"absent\""), 1);
}

TEST(MiniMind1, RefusesOtherScoring) {
  EXPECT_THAT(problemOf(miniMind1Text, R"({"scoring_func": "sigmoid"})"),
              HasSubstr("\"scoring_func\": \"sigmoid\""));
}

TEST(MiniMind2, DescribesTheDecoder) {
  ModelConfig model = read(miniMind2Text);
  EXPECT_EQ(model.family, "minimind (generation 2)");
  EXPECT_TRUE(model.tiedHead);
  EXPECT_EQ(model.names, &transformersNames);
  EXPECT_EQ(model.layerTypes.at(0).attention.rope.pairing, Pairing::Half);
  EXPECT_EQ(model.layerTypes[0].attention.qkNorm, QkNorm::None);
  EXPECT_EQ(std::get<DenseConfig>(model.layerTypes[0].ffn).inner, 1408);
}

TEST(MiniMind2, NormalizesOnlyTwoExpertsOrMore) {
  auto normalizes = [](llvm::StringRef changes) {
    return std::get<SparseConfig>(read(miniMind2Text, changes).layerTypes.at(0).ffn).normalize;
  };
  EXPECT_TRUE(normalizes(R"({"use_moe": true})"));
  EXPECT_FALSE(normalizes(R"({"use_moe": true, "num_experts_per_tok": 1})"));
  EXPECT_FALSE(normalizes(R"({"use_moe": true, "norm_topk_prob": false})"));
}

TEST(MiniMind2, UsesTheConfiguredNumberOfSharedExperts) {
  ModelConfig model =
      read(miniMind2Text, R"({"use_moe": true, "n_shared_experts": 2, "intermediate_size": 48})");
  const SparseConfig &sparse = std::get<SparseConfig>(model.layerTypes.at(0).ffn);
  EXPECT_EQ(sparse.sharedExperts, 2);
  EXPECT_EQ(sparse.expert.inner, 48);
  EXPECT_EQ(sparse.shared.inner, 48);
}

TEST(MiniMind2, HeadIsAlwaysTied) {
  EXPECT_EQ(problemOf(miniMind2Text, R"({"tie_word_embeddings": true})"), "");
  EXPECT_THAT(problemOf(miniMind2Text, R"({"tie_word_embeddings": false})"),
              HasSubstr("\"tie_word_embeddings\""));
}

TEST(MiniMind3, DescribesTheDecoder) {
  ModelConfig model = read(miniMind3Text);
  EXPECT_EQ(model.family, "minimind (generation 3)");
  EXPECT_EQ(model.norm.rounding, NormRounding::AfterWeight);
  EXPECT_EQ(model.layerTypes.at(0).attention.qkNorm, QkNorm::PerHead);
  EXPECT_EQ(std::get<DenseConfig>(model.layerTypes[0].ffn).inner, 2432) << "64 * ceil(pi 768 / 64)";
}

TEST(MiniMind3, NormalizesASingleExpertToo) {
  ModelConfig model = read(miniMind3Text, R"({"use_moe": true})");
  const SparseConfig &sparse = std::get<SparseConfig>(model.layerTypes.at(0).ffn);
  EXPECT_TRUE(sparse.normalize);
  EXPECT_EQ(sparse.expertsPerToken, 1);
  EXPECT_EQ(sparse.expert.inner, 2432);
  EXPECT_EQ(sparse.sharedExperts, 0);
}

TEST(MiniMindGenerations, AreDistinguishedByKeysAndTensors) {
  EXPECT_EQ(read(miniMind1Text, "{}", tensors1).family, "minimind (generation 1)");
  EXPECT_EQ(read(miniMind2Text, "{}", tensors2).family, "minimind (generation 2)");
  EXPECT_EQ(read(miniMind3Text, "{}", tensors3).family, "minimind (generation 3)");
  EXPECT_EQ(read(miniMind2Text, R"({"n_routed_experts": "absent"})", tensors2).family,
            "minimind (generation 2)");
  EXPECT_EQ(read(miniMind3Text, R"({"head_dim": "absent"})").family, "minimind (generation 3)");
}

TEST(MiniMindGenerations, RefusesEvidenceThatDisagrees) {
  EXPECT_EQ(problemOf(miniMind2Text, "{}", tensors3),
            "config.json: the key \"n_routed_experts\" says MiniMind generation 2, but the tensor "
            "\"model.layers.0.self_attn.q_norm.weight\" says generation 3; correct the config or "
            "download the weights that belong to it");
  EXPECT_THAT(problemOf(miniMind3Text, "{}", tensors2), HasSubstr("the absence of q_norm tensors"));
  EXPECT_THAT(problemOf(miniMind1Text, "{}", tensors2),
              HasSubstr("the key \"dim\" says MiniMind generation 1"));
  EXPECT_THAT(problemOf(miniMind3Text, R"({"n_routed_experts": 4})"),
              HasSubstr("says generation 2"));
  EXPECT_THAT(problemOf(miniMind2Text, R"({"dim": 512})"),
              HasSubstr("\"hidden_size\", which is unknown"));
}

TEST(MiniMindGenerations, RefusesNoEvidence) {
  EXPECT_THAT(problemOf(miniMind2Text, R"({"n_routed_experts": "absent"})"),
              HasSubstr("does not identify the generation of MiniMind (no dim, head_dim, "
                        "num_experts or n_routed_experts); add \"head_dim\" for generation 3 or "
                        "the weights"));
}

TEST(MiniMindYarn, FollowsTheFlag) {
  ModelConfig model = read(miniMind2Text, R"({"inference_rope_scaling": true})");
  auto yarn = std::get<YarnScaling>(model.layerTypes.at(0).attention.rope.scaling);
  EXPECT_EQ(yarn.factor, 16);
  EXPECT_EQ(yarn.betaFast, 32);
  EXPECT_EQ(yarn.betaSlow, 1);
  EXPECT_EQ(yarn.original, 2048);
  EXPECT_EQ(yarn.attentionFactor, 1);
  EXPECT_EQ(yarn.highLimit, 31) << "D/2 - 1";
}

TEST(MiniMindYarn, DictionaryWinsOverTheFlag) {
  for (llvm::StringRef flag : {"true", "false"}) {
    ModelConfig model =
        read(miniMind3Text, ("{\"inference_rope_scaling\": " + flag + R"(, "rope_scaling":
        {"type": "yarn", "factor": 8, "original_max_position_embeddings": 4096, "beta_fast": 16}})")
                                .str());
    auto yarn = std::get<YarnScaling>(model.layerTypes.at(0).attention.rope.scaling);
    EXPECT_EQ(yarn.factor, 8);
    EXPECT_EQ(yarn.betaFast, 16);
    EXPECT_EQ(yarn.original, 4096);
  }
}

TEST(MiniMindYarn, IsAbsentIfTheContextIsNotExtended) {
  ModelConfig model =
      read(miniMind2Text, R"({"inference_rope_scaling": true, "max_position_embeddings": 2048})");
  EXPECT_TRUE(
      std::holds_alternative<std::monostate>(model.layerTypes.at(0).attention.rope.scaling));
}

TEST(MiniMindYarn, RejectsTheDictionaryOfAutumn2025) {
  EXPECT_THAT(
      problemOf(miniMind2Text,
                R"({"rope_scaling": {"type": "yarn", "beta_fast": 4, "beta_slow": 1, "factor": 4,
                                           "original_max_position_embeddings": 2048}})"),
      HasSubstr("has the yarn of MiniMind's autumn 2025 (beta_fast 4, factor 4), whose formula is "
                "not supported; convert the model with later code"));
}

TEST(MiniMindYarn, RejectsTheFlagWithParameters) {
  EXPECT_THAT(problemOf(miniMind2Text, R"({"inference_rope_scaling": true,
                                           "rope_parameters": {"rope_type": "default"}})"),
              HasSubstr("has both \"inference_rope_scaling\" and \"rope_parameters\"; keep one"));
}

TEST(MiniMindYarn, RefusesOtherScalings) {
  EXPECT_THAT(problemOf(miniMind2Text, R"({"rope_scaling": {"type": "linear", "factor": 4}})"),
              HasSubstr("only default and yarn are supported"));
}

} // namespace
