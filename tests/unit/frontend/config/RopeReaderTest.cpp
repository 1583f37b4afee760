#include "tests/unit/frontend/config/ConfigText.h"

#include <cmath>

using namespace mica;
using namespace mica::test;
using testing::HasSubstr;

namespace {

RopeConfig ropeOf(llvm::StringRef changes, llvm::StringRef base = llamaText) {
  auto model = configOf(base, changes);
  if (!model) {
    ADD_FAILURE() << messageOf(std::move(model));
    return {};
  }
  return model->layerTypes.front().attention.rope;
}

std::string problem(llvm::StringRef changes) { return problemOf(llamaText, changes); }

TEST(Rope, PlainUnderOldAndNewNames) {
  for (
      llvm::StringRef changes :
      {R"({"rope_theta": 5e5})",
       R"({"rope_theta": "absent", "rope_parameters": {"rope_theta": 5e5}})",
       R"({"rope_theta": 5e5, "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"}})",
       R"({"rope_theta": 5e5, "rope_scaling": {"type": "default"}})",
       R"({"rope_theta": "absent", "rope_parameters": {"full_attention": {"rope_theta": 5e5}}})"}) {
    RopeConfig rope = ropeOf(changes);
    EXPECT_EQ(rope.theta, 5e5) << changes.str();
    EXPECT_EQ(rope.dimensions, 8);
    EXPECT_EQ(rope.pairing, Pairing::Half);
    EXPECT_TRUE(std::holds_alternative<std::monostate>(rope.scaling));
  }
}

TEST(Rope, ThetaHasADefault) { EXPECT_EQ(ropeOf(R"({"rope_theta": "absent"})").theta, 10000); }

TEST(Rope, Linear) {
  for (llvm::StringRef changes :
       {R"({"rope_scaling": {"type": "linear", "factor": 2.0}})",
        R"({"rope_scaling": {"rope_type": "linear", "type": "linear", "factor": 2}})",
        R"({"rope_parameters": {"rope_type": "linear", "factor": 2}})"})
    EXPECT_EQ(std::get<LinearScaling>(ropeOf(changes).scaling).factor, 2) << changes.str();
}

TEST(Rope, Llama3) {
  RopeConfig rope =
      ropeOf(R"({"rope_scaling": {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}})");
  auto scaling = std::get<Llama3Scaling>(rope.scaling);
  EXPECT_EQ(scaling.factor, 32);
  EXPECT_EQ(scaling.lowFrequency, 1);
  EXPECT_EQ(scaling.highFrequency, 4);
  EXPECT_EQ(scaling.original, 8192);
}

TEST(Rope, YarnAsTransformersHasIt) {
  RopeConfig rope = ropeOf(R"({"rope_scaling": {"rope_type": "yarn", "factor": 4.0,
      "original_max_position_embeddings": 128}})");
  auto yarn = std::get<YarnScaling>(rope.scaling);
  EXPECT_EQ(yarn.betaFast, 32);
  EXPECT_EQ(yarn.betaSlow, 1);
  EXPECT_EQ(yarn.original, 128);
  EXPECT_EQ(yarn.highLimit, 7) << "D - 1";
  EXPECT_TRUE(yarn.truncate);
  EXPECT_DOUBLE_EQ(yarn.attentionFactor, 0.1 * std::log(4.0) + 1);
}

TEST(Rope, YarnFactorsFromMscaleOrTheContexts) {
  RopeConfig rope = ropeOf(
      R"({"rope_parameters": {"rope_type": "yarn", "factor": null, "mscale": 2, "mscale_all_dim": 1,
      "original_max_position_embeddings": 128, "beta_fast": 16, "beta_slow": 2, "truncate": false}})");
  auto yarn = std::get<YarnScaling>(rope.scaling);
  EXPECT_EQ(yarn.factor, 4) << "512 / 128";
  EXPECT_EQ(yarn.betaFast, 16);
  EXPECT_EQ(yarn.betaSlow, 2);
  EXPECT_FALSE(yarn.truncate);
  EXPECT_DOUBLE_EQ(yarn.attentionFactor, (0.2 * std::log(4.0) + 1) / (0.1 * std::log(4.0) + 1));
}

/// Scalings that depend on the sequence length.
TEST(Rope, FrequenciesThatFollowTheLength) {
  RopeConfig rope = ropeOf(R"({"rope_scaling": {"type": "longrope", "factor": 4,
      "original_max_position_embeddings": 128, "short_factor": [1, 2, 3, 4],
      "long_factor": [5, 6, 7, 8]}})");
  EXPECT_TRUE(rope.followsLength());
  auto scaling = std::get<LongRopeScaling>(rope.scaling);
  EXPECT_EQ(scaling.shortFactors, (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(scaling.longFactors, (std::vector<double>{5, 6, 7, 8}));
  EXPECT_EQ(scaling.original, 128);
  EXPECT_DOUBLE_EQ(scaling.attentionFactor, std::sqrt(1 + std::log(4.0) / std::log(128.0)));
  EXPECT_THAT(
      problem(R"({"rope_scaling": {"type": "su", "short_factor": [1, 2]}})"),
      HasSubstr("has no list of 4 numbers in \"rope_scaling.short_factor\", which this scaling "
                "needs"));
  rope = ropeOf(R"({"rope_scaling": {"type": "dynamic", "factor": 2}})");
  EXPECT_TRUE(rope.followsLength());
  EXPECT_EQ(std::get<DynamicScaling>(rope.scaling).factor, 2);
  EXPECT_EQ(std::get<DynamicScaling>(rope.scaling).original, 512);
}

TEST(Rope, RefusesOtherScalingsByName) {
  for (llvm::StringRef type : {"mrope", "proportional"})
    EXPECT_EQ(
        problem(("{\"rope_scaling\": {\"type\": \"" + type + "\", \"factor\": 2}}").str()),
        ("config.json: has the rope scaling \"" + type +
         "\" in \"rope_scaling\", only default, linear, dynamic, yarn, longrope and llama3 are "
         "supported; choose a model without it")
            .str());
  EXPECT_THAT(problem(R"({"rope_scaling": {"factor": 2}})"),
              HasSubstr("has no key \"rope_scaling.rope_type\", which this scaling needs; add it"));
}

TEST(Rope, RefusesUnknownEntries) {
  EXPECT_THAT(problem(R"({"rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 3}})"),
              HasSubstr("has the key \"rope_scaling.beta_fast\", which is unknown for its scaling; "
                        "remove it if it has no effect"));
}

TEST(Rope, RefusesContradictions) {
  EXPECT_THAT(problem(R"({"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2}})"),
              HasSubstr("but \"rope_type\" differs"));
  EXPECT_THAT(problem(R"({"rope_parameters": {"rope_theta": 5e5}})"),
              HasSubstr("has \"rope_theta\" and another \"rope_parameters.rope_theta\"; keep one"));
  EXPECT_THAT(
      problem(
          R"({"rope_scaling": {"type": "default"}, "rope_parameters": {"rope_type": "default"}})"),
      HasSubstr("has both \"rope_scaling\" and \"rope_parameters\"; keep one"));
  EXPECT_THAT(problem(R"({"rope_parameters": {"full_attention": {}, "sliding_attention": {}}})"),
              HasSubstr("has \"rope_parameters\" for several layer types, only full_attention is "
                        "supported"));
}

TEST(Rope, RefusesImpossibleNumbers) {
  EXPECT_EQ(problem(R"({"rope_scaling": {"type": "linear", "factor": 0}})"),
            "config.json: has \"rope_scaling.factor\": 0, expected a number from 1 to 1000000; "
            "correct it");
  EXPECT_THAT(problem(R"({"rope_scaling": {"type": "linear"}})"),
              HasSubstr("has no key \"rope_scaling.factor\", which this scaling needs; add it"));
  EXPECT_THAT(problem(R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4,
      "high_freq_factor": 4, "original_max_position_embeddings": 8192}})"),
              HasSubstr("has a \"rope_scaling.high_freq_factor\" that is not greater than its "
                        "\"rope_scaling.low_freq_factor\""));
  EXPECT_THAT(
      problem(R"({"rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": 1, "beta_slow": 2}})"),
      HasSubstr("has a \"rope_scaling.beta_fast\" below its \"rope_scaling.beta_slow\""));
  EXPECT_THAT(problem(R"({"rope_scaling": {"type": "yarn", "factor": 2, "truncate": 1}})"),
              HasSubstr("has \"rope_scaling.truncate\": 1, expected true or false"));
  EXPECT_THAT(
      problem(R"({"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 1.5}})"),
      HasSubstr("\"rope_parameters.partial_rotary_factor\": 1.5, expected a number"));
  EXPECT_THAT(
      problem(R"({"model_type": "stablelm", "architectures": null, "rms_norm_eps": "absent",
          "rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.01}})"),
      HasSubstr("rotates 0 of 8 elements of a head by its partial_rotary_factor, but rope rotates "
                "pairs"));
}

/// The modeling code of the other families ignores the factor, or fails.
TEST(Rope, PartOfAHeadRotatesInSomeFamiliesOnly) {
  constexpr llvm::StringLiteral half =
      R"({"model_type": "{0}", "architectures": null, "rms_norm_eps": "absent", "rope_parameters":
          {"rope_type": "{1}"{2}, "partial_rotary_factor": {3}}})";
  auto changes = [&](llvm::StringRef family, llvm::StringRef type, llvm::StringRef part) {
    std::string text = half.str();
    auto put = [&](llvm::StringRef place, llvm::StringRef value) {
      text.replace(text.find(place), place.size(), value);
    };
    put("{0}", family);
    put("{1}", type);
    put("{2}", type == "linear" ? ", \"factor\": 2" : "");
    put("{3}", part);
    return text;
  };
  for (llvm::StringRef family : {"glm4", "gpt_neox", "phi3", "stablelm"})
    EXPECT_EQ(ropeOf(changes(family, "linear", "0.5")).dimensions, family == "glm4" ? 64 : 4)
        << family.str();
  for (llvm::StringRef family : {"llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "olmo2",
                                 "granite", "cohere", "starcoder2"})
    for (llvm::StringRef type : {"default", "linear"})
      EXPECT_THAT(
          problem(changes(family, type, "0.5")),
          HasSubstr("has \"rope_parameters.partial_rotary_factor\": 0.5, but the family's code "
                    "rotates whole heads; remove it if the model was trained with that code"))
          << family.str();
  EXPECT_EQ(ropeOf(changes("llama", "default", "1.0")).dimensions, 8);
}

} // namespace
