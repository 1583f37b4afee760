#include "backends/runtime/engine/SettingTable.h"

#include <cmath>
#include <gmock/gmock.h>
#include <set>

using namespace mica::rt;
using testing::ElementsAre;

namespace {
Manifest modelOf(int64_t batchInvariantRows = 8) {
  Manifest manifest;
  manifest.vocab = 32;
  manifest.batchInvariantRows = batchInvariantRows;
  return manifest;
}

std::string refusal(const GenerationSettings &settings, const Manifest &manifest = modelOf()) {
  Status checked = checkSettings(settings, manifest);
  return checked ? "" : checked.error().message;
}

TEST(GenerationSettings, SettingsThenManifestThenDefaults) {
  GenerationSettings settings;
  Manifest manifest;
  SamplingOptions options = samplingOptions(settings, manifest);
  EXPECT_EQ(options.temperature, 0.8);
  EXPECT_EQ(options.topP, 0.95);
  EXPECT_EQ(options.topK, 0);
  EXPECT_EQ(options.repetitionPenalty, 1);
  EXPECT_EQ(options.presencePenalty, 0);
  manifest.generation.temperature = 0.6;
  manifest.generation.topK = 20;
  manifest.generation.typicalP = 0.9;
  options = samplingOptions(settings, manifest);
  EXPECT_EQ(options.temperature, 0.6);
  EXPECT_EQ(options.topK, 20);
  EXPECT_EQ(options.typicalP, 0.9);
  EXPECT_EQ(options.topP, 0.95);
  manifest.generation.doSample = false;
  EXPECT_EQ(samplingOptions(settings, manifest).temperature, 0);
  settings.temperature = 1.5;
  settings.topK = 3;
  settings.seed = 9;
  settings.presencePenalty = 2;
  options = samplingOptions(settings, manifest);
  EXPECT_EQ(options.temperature, 1.5);
  EXPECT_EQ(options.topK, 3);
  EXPECT_EQ(options.seed, 9u);
  EXPECT_EQ(options.presencePenalty, 2);
}

TEST(GenerationSettings, AbsentSeedsAreDrawn) {
  EXPECT_NE(samplingOptions({}, Manifest()).seed, samplingOptions({}, Manifest()).seed);
}

TEST(GenerationSettings, ARequestsOwnComeBeforeTheOthers) {
  GenerationSettings own, base;
  own.seed = 0;
  own.topK = 0;
  own.lookup = 0;
  own.stops = {"a"};
  base.seed = 5;
  base.topK = 7;
  base.lookup = 3;
  base.maxTokens = 9;
  base.temperature = 0.5;
  base.stops = {"b"};
  base.endTokens = {3};
  base.logitBias = {{4, 1.5f}};
  base.ignoreEos = true;
  GenerationSettings all = own.orElse(base);
  EXPECT_EQ(all.seed, 0u);
  EXPECT_EQ(all.topK, 0);
  EXPECT_EQ(all.lookup, 0);
  EXPECT_EQ(all.maxTokens, 9);
  EXPECT_EQ(all.temperature, 0.5);
  EXPECT_FALSE(all.topP);
  EXPECT_THAT(all.stops, ElementsAre("a"));
  EXPECT_THAT(all.endTokens, ElementsAre(3));
  EXPECT_EQ(all.logitBias.size(), 1u);
  EXPECT_TRUE(all.ignoreEos);
}

/// Values at the ends of the range are accepted, those beyond and NaN are not.
template <typename T>
void expectRange(std::optional<T> GenerationSettings::*member, const mica::SettingRange<T> &range,
                 T below, T above, const std::string &name) {
  for (T good : {range.min, range.max}) {
    GenerationSettings settings;
    settings.*member = good;
    EXPECT_EQ(refusal(settings), "") << name;
  }
  for (T bad : {below, above}) {
    GenerationSettings settings;
    settings.*member = bad;
    EXPECT_THAT(refusal(settings), testing::StartsWith(name + " is ")) << name;
  }
}

TEST(GenerationSettings, EachHasARange) {
  namespace range = setting_range;
  using S = GenerationSettings;
  expectRange(&S::temperature, range::temperature, -0.1, 1.1e6, "temperature");
  expectRange(&S::topP, range::topP, -0.1, 1.1, "top_p");
  expectRange(&S::minP, range::minP, -0.1, std::nan(""), "min_p");
  expectRange(&S::typicalP, range::typicalP, 0.0, 1.1, "typical_p");
  expectRange(&S::repetitionPenalty, range::repetitionPenalty, 0.0, 1e7, "repetition_penalty");
  expectRange(&S::presencePenalty, range::presencePenalty, -1e5, 1e5, "presence_penalty");
  expectRange(&S::frequencyPenalty, range::frequencyPenalty, -1e5, 1e5, "frequency_penalty");
  expectRange(&S::dryMultiplier, range::dryMultiplier, -0.1, 1e5, "dry_multiplier");
  expectRange(&S::dryBase, range::dryBase, 0.9, 1e5, "dry_base");
  expectRange(&S::xtcProbability, range::xtcProbability, -0.1, 1.1, "xtc_probability");
  expectRange(&S::xtcThreshold, range::xtcThreshold, -0.1, 1.1, "xtc_threshold");
  expectRange(&S::mirostatTau, range::mirostatTau, -0.1, 101.0, "mirostat_ent");
  expectRange(&S::mirostatEta, range::mirostatEta, -0.1, 101.0, "mirostat_lr");
  constexpr int64_t tooMany = range::maxCount + 1;
  expectRange<int64_t>(&S::topK, range::topK, -1, tooMany, "top_k");
  expectRange<int64_t>(&S::dryAllowedLength, range::dryAllowedLength, -1, tooMany,
                       "dry_allowed_length");
  expectRange<int64_t>(&S::dryPenaltyLastN, range::dryPenaltyLastN, -2, tooMany,
                       "dry_penalty_last_n");
  expectRange<int64_t>(&S::mirostat, range::mirostat, -1, 3, "mirostat");
  expectRange<int64_t>(&S::maxTokens, range::maxTokens, -1, tooMany, "max_tokens");
  expectRange<int64_t>(&S::lookup, range::lookup, -1, 32, "--lookup");
  GenerationSettings settings;
  settings.mtp = 32;
  EXPECT_THAT(refusal(settings), testing::StartsWith("--mtp is 32"));
  settings.mtp.reset();
  settings.topP = 1.5;
  EXPECT_EQ(refusal(settings), "top_p is 1.5; choose a value from 0 to 1");
}

TEST(GenerationSettings, UnsupportedSettingsAreRefused) {
  GenerationSettings settings;
  settings.logitBias = {{31, -std::numeric_limits<float>::infinity()}};
  EXPECT_EQ(refusal(settings), "");
  settings.logitBias = {{32, 1}};
  EXPECT_EQ(refusal(settings), "logit bias: token 32 is not in the model's vocabulary (0 to 31); "
                               "use another");
  for (float bias : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    settings.logitBias = {{3, bias}};
    EXPECT_EQ(refusal(settings), "the bias of token 3 is not a number below infinity; use another");
  }
  settings = {};
  settings.stops = {"a", ""};
  EXPECT_EQ(refusal(settings), "a stop string is empty; leave it out");
  settings = {};
  settings.lookup = 1;
  EXPECT_EQ(refusal(settings), "");
  EXPECT_EQ(refusal(settings, modelOf(1)),
            "--lookup: the program computes one row at a time; leave it out or compile again");
}

TEST(SettingTable, MethodsAreOffByDefaultAndRequestsAreWithinTheirRanges) {
  const SamplingOptions defaults;
  std::set<std::string_view> methods;
  size_t numInRequests = 0;
  forEachSetting([&](const auto &setting) {
    if (!setting.method.empty() && methods.insert(setting.method).second)
      EXPECT_EQ(defaults.*setting.option, 0) << setting.name << " switches " << setting.method;
    if (!setting.inRequests)
      return;
    ++numInRequests;
    EXPECT_TRUE(setting.range.contains(setting.inRequests->min)) << setting.name;
    EXPECT_TRUE(setting.range.contains(setting.inRequests->max)) << setting.name;
  });
  EXPECT_THAT(methods, ElementsAre("dry", "mirostat", "xtc"));
  EXPECT_EQ(numInRequests, 7u);
}

TEST(SettingTable, HasTheSettingsThatModelsRecommend) {
  std::vector<std::string_view> names;
  forEachSetting([&](const auto &setting) {
    if (setting.recommended)
      names.push_back(setting.name);
  });
  std::vector<std::string_view> recommended{mica::kSamplingTopK.name};
  for (const auto &setting : mica::kSamplingNumbers)
    recommended.push_back(setting.name);
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(recommended));
}
} // namespace
