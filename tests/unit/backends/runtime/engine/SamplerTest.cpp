#include "backends/runtime/engine/Sampler.h"
#include "backends/runtime/engine/LogProbabilities.h"
#include "tests/unit/Paths.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <gmock/gmock.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <tuple>

using namespace mica::rt;
using testing::ElementsAre;

namespace {
constexpr float inf = std::numeric_limits<float>::infinity();

/// Plain sampling without any other method.
SamplingOptions plain(double temperature = 1) { return {temperature, 0, 1, 0, 1, 0}; }

/// Token -> probability among the candidates.
std::map<int32_t, double> distribution(const SamplingOptions &options, std::vector<float> logits,
                                       std::vector<int32_t> seen = {},
                                       std::vector<int32_t> generated = {}) {
  Sampler sampler(options, static_cast<int64_t>(logits.size()));
  for (int32_t token : seen)
    sampler.observe(token);
  for (int32_t token : generated)
    sampler.append(token);
  auto candidates = sampler.candidates(logits);
  EXPECT_TRUE(candidates) << candidates.error().message;
  double total = 0;
  for (auto &candidate : *candidates)
    total += candidate.weight;
  std::map<int32_t, double> result;
  for (auto &candidate : *candidates)
    result[candidate.token] = candidate.weight / total;
  return result;
}

void expectDistribution(const std::map<int32_t, double> &actual,
                        const std::map<int32_t, double> &expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (auto [token, probability] : expected) {
    ASSERT_TRUE(actual.contains(token)) << token;
    EXPECT_NEAR(actual.at(token), probability, 1e-6) << token;
  }
}

/// Logits of the probabilities 0.1, 0.4, 0.2, 0.3.
const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f), std::log(0.3f)};

TEST(Sampler, SoftmaxWithTemperature) {
  expectDistribution(distribution(plain(), logits), {{0, 0.1}, {1, 0.4}, {2, 0.2}, {3, 0.3}});
  // Squares of the probabilities: 0.01, 0.16, 0.04, 0.09 of 0.30.
  expectDistribution(distribution(plain(0.5), logits),
                     {{0, 1.0 / 30}, {1, 16.0 / 30}, {2, 4.0 / 30}, {3, 9.0 / 30}});
}

TEST(Sampler, TopKKeepsTies) {
  SamplingOptions options = plain();
  options.topK = 2;
  expectDistribution(distribution(options, logits), {{1, 4.0 / 7}, {3, 3.0 / 7}});
  expectDistribution(
      distribution(options, {1, 2, 1, 1}),
      {{0, 1 / (3 + M_E)}, {1, M_E / (3 + M_E)}, {2, 1 / (3 + M_E)}, {3, 1 / (3 + M_E)}});
  options.topK = 100;
  EXPECT_EQ(distribution(options, logits).size(), 4u);
}

TEST(Sampler, TopPKeepsTheSmallestSetThatReachesTheMass) {
  SamplingOptions options = plain();
  options.topP = 0.65;
  expectDistribution(distribution(options, logits), {{1, 4.0 / 7}, {3, 3.0 / 7}});
  options.topP = 0.75;
  expectDistribution(distribution(options, logits), {{1, 4.0 / 9}, {3, 3.0 / 9}, {2, 2.0 / 9}});
  options.topP = 1e-9;
  expectDistribution(distribution(options, logits), {{1, 1}});
}

TEST(Sampler, MinPComparesWithTheLikeliest) {
  SamplingOptions options = plain();
  options.minP = 0.45;
  expectDistribution(distribution(options, logits), {{1, 4.0 / 9}, {3, 3.0 / 9}, {2, 2.0 / 9}});
  options.minP = 1;
  expectDistribution(distribution(options, logits), {{1, 1}});
}

TEST(Sampler, TemperatureComesBeforeTopP) {
  // At temperature 0.5 the probabilities are 1/30, 16/30, 4/30, 9/30: the first two tokens have
  // 25/30 > 0.8 already.
  SamplingOptions options = plain(0.5);
  options.topP = 0.8;
  expectDistribution(distribution(options, logits), {{1, 16.0 / 25}, {3, 9.0 / 25}});
}

TEST(Sampler, TopKComesBeforeTopP) {
  // After top-k 2 the likeliest has 4/7 = 0.571 of the mass, enough for top-p 0.57; before it, 0.4
  // would not be.
  SamplingOptions options = plain();
  options.topK = 2;
  options.topP = 0.57;
  expectDistribution(distribution(options, logits), {{1, 1}});
}

/// The tokens that top-k, top-p and min-p keep, by sorting all.
std::set<int32_t> keptBySorting(const SamplingOptions &options, const std::vector<float> &all) {
  std::vector<int32_t> order(all.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return all[a] > all[b]; });
  while (options.topK > 0 && std::ssize(order) > options.topK &&
         all[order.back()] < all[order[options.topK - 1]])
    order.pop_back();
  auto weight = [&](int32_t token) {
    return std::exp((double(all[token]) - double(all[order[0]])) / options.temperature);
  };
  double total = 0, mass = 0;
  for (int32_t token : order)
    total += weight(token);
  std::set<int32_t> kept;
  for (int32_t token : order) {
    if ((options.topP < 1 && mass >= options.topP * total) || weight(token) < options.minP)
      break;
    kept.insert(token);
    mass += weight(token);
  }
  return kept;
}

TEST(Sampler, CutsLargeVocabulariesAsIfSorted) {
  Random random(7);
  for (float range : {0.f, 0.01f, 1.f, 12.f, 60.f, 3000.f})
    for (double temperature : {0.3, 1.0, 2.0})
      for (auto [topK, topP, minP] : {std::tuple<int64_t, double, double>{0, 0.95, 0},
                                      {0, 0.5, 0.01},
                                      {0, 1, 0.05},
                                      {40, 0.9, 0},
                                      {700, 1, 0},
                                      {0, 1e-9, 0},
                                      {0, 0.999, 1e-9}}) {
        std::vector<float> all(4000);
        for (float &logit : all)
          logit = random.next() % 50 == 0 ? -inf : range * static_cast<float>(random.uniform());
        SamplingOptions options = plain(temperature);
        options.topK = topK;
        options.topP = topP;
        options.minP = minP;
        SCOPED_TRACE(testing::Message()
                     << range << " " << temperature << " " << topK << " " << topP << " " << minP);
        auto found = Sampler(options, 4000).candidates(all);
        ASSERT_TRUE(found);
        std::set<int32_t> tokens;
        for (const Sampler::Candidate &candidate : *found)
          if (all[candidate.token] > -inf)
            tokens.insert(candidate.token);
        std::set<int32_t> expected = keptBySorting(options, all);
        std::erase_if(expected, [&](int32_t token) { return all[token] == -inf; });
        EXPECT_EQ(tokens.size(), found->size());
        // The total is rounded, so that the last of many similar tokens may be another.
        EXPECT_NEAR(static_cast<double>(tokens.size()), static_cast<double>(expected.size()), 1);
        std::vector<int32_t> others;
        std::ranges::set_symmetric_difference(tokens, expected, std::back_inserter(others));
        EXPECT_LE(others.size(), 1u);
      }
}

TEST(Sampler, RepetitionPenaltyCountsEachTokenOnce) {
  SamplingOptions options = plain();
  options.repetitionPenalty = 2;
  // Logits 2, -1, 0 of seen tokens become 1, -2, 0; the unseen 1 stays.
  double total = std::exp(1) + std::exp(-2) + 1 + std::exp(1);
  expectDistribution(distribution(options, {2, -1, 0, 1}, {0, 1, 2, 0, 0}),
                     {{0, std::exp(1) / total},
                      {1, std::exp(-2) / total},
                      {2, 1 / total},
                      {3, std::exp(1) / total}});
}

TEST(Sampler, DryPenalizesContinuedRepetitions) {
  SamplingOptions options = plain(0);
  options.dryMultiplier = 0.8;
  options.dryBase = 2;
  auto penaltyOf = [&](std::vector<int32_t> history, int32_t token) {
    SamplingOptions warm = options;
    warm.temperature = 1;
    // Equal logits except for the penalty.
    auto found = distribution(warm, std::vector<float>(8, 0), history);
    return std::log(found[7] / found[token]);
  };
  // 1 2 3 was followed by 4: 0.8 * 2 ^ (3 - 2); 2 and 3 before, nothing else.
  EXPECT_NEAR(penaltyOf({1, 2, 3, 4, 1, 2, 3}, 4), 1.6, 1e-5);
  EXPECT_NEAR(penaltyOf({1, 2, 3, 4, 1, 2, 3}, 1), 0, 1e-5);
  // The longest of two repetitions counts: 2 3 was followed by 4 as well.
  EXPECT_NEAR(penaltyOf({1, 2, 3, 4, 0, 2, 3, 4, 0, 1, 2, 3}, 4), 1.6, 1e-5);
  // A single token is no repetition of the allowed length.
  EXPECT_NEAR(penaltyOf({3, 4, 3}, 4), 0, 1e-5);
  options.dryAllowedLength = 1;
  EXPECT_NEAR(penaltyOf({3, 4, 3}, 4), 0.8, 1e-5);
  options.dryAllowedLength = 2;
  // Only the last tokens count.
  options.dryPenaltyLastN = 5;
  EXPECT_NEAR(penaltyOf({1, 2, 3, 4, 1, 2, 3}, 4), 0, 1e-5);
  options.dryPenaltyLastN = 6;
  EXPECT_NEAR(penaltyOf({1, 2, 3, 4, 1, 2, 3}, 4), 0.8, 1e-5);
  options.dryPenaltyLastN = -1;
  // Repetitions overlap: 1 1 1 1 continues with 1 after three of them.
  EXPECT_NEAR(penaltyOf({1, 1, 1, 1}, 1), 1.6, 1e-5);
}

TEST(Sampler, DryStopsAtSequenceBreakers) {
  SamplingOptions options = plain();
  options.dryMultiplier = 1;
  options.dryBase = 2;
  options.dryAllowedLength = 1;
  std::vector<int32_t> history = {1, 2, 3, 4, 1, 2, 3};
  auto penalty = [&] {
    auto found = distribution(options, std::vector<float>(8, 0), history);
    return std::log(found[7] / found[4]);
  };
  EXPECT_NEAR(penalty(), 4, 1e-5); // 2 ^ (3 - 1)
  options.dryBreakers = {{1}};
  EXPECT_NEAR(penalty(), 2, 1e-5); // of 2 3
  options.dryBreakers = {{1, 2}};
  EXPECT_NEAR(penalty(), 1, 1e-5); // of 3
  options.dryBreakers = {{3}};
  EXPECT_NEAR(penalty(), 0, 1e-5);
  options.dryBreakers = {{4}}; // is not penalized itself
  EXPECT_NEAR(penalty(), 0, 1e-5);
}

TEST(Sampler, XtcDropsTheLikeliestButTheLastAboveTheThreshold) {
  SamplingOptions options = plain();
  options.xtcProbability = 1;
  options.xtcThreshold = 0.15;
  // 0.4 and 0.3 are dropped, 0.2 is the last above 0.15.
  expectDistribution(distribution(options, logits), {{0, 1.0 / 3}, {2, 2.0 / 3}});
  options.xtcThreshold = 0.35; // only one is above
  EXPECT_EQ(distribution(options, logits).size(), 4u);
  options.xtcThreshold = 0.51;
  EXPECT_EQ(distribution(options, logits).size(), 4u);
  options.xtcThreshold = 0.15;
  options.xtcProbability = 0;
  EXPECT_EQ(distribution(options, logits).size(), 4u);
  // Probabilities are those before the temperature: at 0.5 the third one would be 0.133.
  options.xtcProbability = 1;
  options.temperature = 0.5;
  expectDistribution(distribution(options, logits), {{0, 1.0 / 5}, {2, 4.0 / 5}});
}

TEST(Sampler, XtcHappensWithItsProbability) {
  SamplingOptions options = plain();
  options.xtcProbability = 0.25;
  options.xtcThreshold = 0.15;
  Sampler sampler(options, 4);
  int dropped = 0;
  for (int i = 0; i < 4000; ++i)
    dropped += sampler.candidates(logits)->size() == 2;
  EXPECT_NEAR(dropped, 1000, 100);
}

TEST(Sampler, Mirostat2CutsTheTailAndFollowsTheInformation) {
  SamplingOptions options = plain();
  options.topP = 0.1; // is ignored
  options.mirostat = 2;
  options.mirostatTau = 1; // Tokens of at most 2 bits at first: p >= 0.25.
  options.mirostatEta = 0.5;
  Sampler sampler(options, 4);
  auto tokens = [&] {
    std::vector<int32_t> found;
    auto candidates = sampler.candidates(logits);
    for (auto &candidate : *candidates)
      found.push_back(candidate.token);
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_THAT(tokens(), ElementsAre(1, 3));
  double mu = 2;
  std::vector<double> probabilities = {0.1, 0.4, 0.2, 0.3};
  for (int step = 0; step < 50; ++step) {
    double total = 0;
    std::vector<int32_t> expected;
    for (int32_t i = 0; i < 4; ++i)
      if (i == 1 || -std::log2(probabilities[i]) <= mu) {
        expected.push_back(i);
        total += probabilities[i];
      }
    ASSERT_EQ(tokens(), expected) << step;
    int32_t chosen = *sampler.sample(logits);
    mu -= 0.5 * (-std::log2(probabilities[chosen] / total) - 1);
  }
}

TEST(Sampler, Mirostat1EstimatesHowManyTokensToKeep) {
  SamplingOptions options = plain();
  options.mirostat = 1;
  options.mirostatTau = 1;
  // Zipf's law with exponent 2 over 1000 tokens: rank k with e = 1 is sqrt(2^mu / (1 - 1/1000)).
  std::vector<float> zipf;
  for (int i = 1; i <= 1000; ++i)
    zipf.push_back(static_cast<float>(-2 * std::log(i)));
  Sampler sampler(options, 1000);
  EXPECT_EQ(sampler.candidates(zipf)->size(), 2u); // sqrt(4 / 0.999) = 2.001
  options.mirostatTau = 3;
  EXPECT_EQ(Sampler(options, 1000).candidates(zipf)->size(), 8u); // sqrt(64 / 0.999) = 8.004
  // Equal probabilities are not distributed like that: all tokens stay.
  EXPECT_EQ(Sampler(options, 4).candidates(std::vector<float>(4, 0))->size(), 4u);
}

TEST(LogProbabilities, AreOfTheRawDistribution) {
  LogProbabilities found = logProbabilities(logits, 2, 2);
  EXPECT_NEAR(found.chosen, std::log(0.2), 1e-6);
  ASSERT_EQ(found.top.size(), 2u);
  EXPECT_EQ(found.top[0].first, 1);
  EXPECT_NEAR(found.top[0].second, std::log(0.4), 1e-6);
  EXPECT_EQ(found.top[1].first, 3);
  EXPECT_NEAR(found.top[1].second, std::log(0.3), 1e-6);
  // Ties are sorted by number; no more than there are; nothing for an empty input.
  EXPECT_EQ(logProbabilities(std::vector<float>{1, 1, 1}, 0, 5).top[1].first, 1);
  EXPECT_EQ(logProbabilities(std::vector<float>{1, 1, 1}, 0, 5).top.size(), 3u);
  EXPECT_TRUE(logProbabilities(logits, 0, 0).top.empty());
  EXPECT_NEAR(logProbabilities(std::vector<float>{1e30f, 0, -inf}, 1, 0).chosen, -1e30, 1e24);
}

TEST(Sampler, RepetitionPenaltyHoldsForGreedyToo) {
  SamplingOptions options = plain(0);
  options.repetitionPenalty = 3;
  Sampler sampler(options, 3);
  EXPECT_EQ(*sampler.sample(std::vector<float>{2, 1, 0}), 0);
  sampler.observe(0);
  EXPECT_EQ(*sampler.sample(std::vector<float>{2, 1, 0}), 1);
}

/// Cases of tests/goldens/make_sampling_goldens.py, by transformers.
TEST(Sampler, ChancesAreThoseOfTheReference) {
  std::ifstream file(std::string(MICA_SOURCE_DIR) + "/tests/goldens/sampling.json");
  auto golden = nlohmann::json::parse(file);
  ASSERT_GT(golden["cases"].size(), 50u);
  for (const auto &entry : golden["cases"]) {
    const auto &given = entry["options"];
    auto number = [&](const char *key, double off) { return given.value(key, off); };
    SamplingOptions options = plain(number("temperature", 1));
    options.topK = static_cast<int64_t>(number("top_k", 0));
    options.topP = number("top_p", 1);
    options.minP = number("min_p", 0);
    options.typicalP = number("typical_p", 1);
    options.repetitionPenalty = number("repetition_penalty", 1);
    options.presencePenalty = number("presence_penalty", 0);
    options.frequencyPenalty = number("frequency_penalty", 0);
    if (given.contains("logit_bias"))
      for (const auto &bias : given["logit_bias"])
        options.logitBias.push_back({bias[0].get<int32_t>(), bias[1].get<float>()});
    std::map<int32_t, double> expected;
    for (const auto &[token, chance] : entry["chances"].items())
      expected[std::stoi(token)] = chance.get<double>();
    SCOPED_TRACE(given.dump());
    expectDistribution(distribution(options, entry["logits"].get<std::vector<float>>(),
                                    entry["prompt"].get<std::vector<int32_t>>(),
                                    entry["generated"].get<std::vector<int32_t>>()),
                       expected);
  }
}

TEST(Sampler, GreedyTakesTheLowestIndexOfTheMaximum) {
  EXPECT_EQ(*argmax(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(*argmax(std::vector<float>{-inf, -5, -inf}), 1);
  EXPECT_EQ(*argmax(std::vector<float>{-0.0f, 0.0f}), 0);
}

TEST(Sampler, NonfiniteLogitsAreErrors) {
  float nan = std::nanf("");
  for (std::vector<float> bad :
       {std::vector<float>{1, nan}, {nan, 1}, {1, inf}, {-inf, -inf}, {}}) {
    EXPECT_FALSE(argmax(bad));
    Sampler sampler(plain(), 2);
    EXPECT_FALSE(sampler.sample(bad));
  }
}

TEST(Sampler, MaskedTokensAreNeverDrawn) {
  Sampler sampler(plain(), 3);
  for (int i = 0; i < 200; ++i)
    EXPECT_NE(*sampler.sample(std::vector<float>{0, -inf, 0}), 1);
}

TEST(Sampler, ABiasOfMinusInfinityBans) {
  for (SamplingOptions options : {plain(), plain(0), SamplingOptions{1, 0, 0.95, 0, 1.5, 0, 0.9}}) {
    options.logitBias = {{1, -inf}, {1, 5}, {3, -inf}};
    expectDistribution(distribution(options, logits, {1, 2}),
                       distribution(options, {logits[0], -inf, logits[2], -inf}, {1, 2}));
    EXPECT_FALSE(distribution(options, logits).contains(1));
    Sampler sampler(options, 4);
    for (int i = 0; i < 100; ++i)
      EXPECT_EQ(*sampler.sample(logits) % 2, 0);
    options.logitBias.insert(options.logitBias.end(), {{0, -inf}, {2, -inf}});
    EXPECT_EQ(Sampler(options, 4).sample(logits).error().message,
              "the logit bias bans every token; leave at least one");
    EXPECT_THAT(Sampler(options, 4).sample(std::vector<float>(4, inf)).error().message,
                testing::StartsWith("the model computed logits that are not finite"));
  }
}

TEST(Sampler, FrequenciesFollowTheProbabilities) {
  SamplingOptions options = plain();
  options.seed = 42;
  Sampler sampler(options, 4);
  std::map<int32_t, int> counts;
  for (int i = 0; i < 20000; ++i)
    ++counts[*sampler.sample(logits)];
  // Four standard deviations of a binomial count.
  for (auto [token, p] : {std::pair(0, 0.1), {1, 0.4}, {2, 0.2}, {3, 0.3}})
    EXPECT_NEAR(counts[token], 20000 * p, 4 * std::sqrt(20000 * p * (1 - p)));
}

/// A vocabulary of several blocks, of which some are banned.
TEST(Sampler, FrequenciesOfALargeVocabulary) {
  constexpr size_t vocab = 5 * 1024 + 7;
  const std::map<size_t, double> probabilities = {
      {1030, 0.1}, {2047, 0.2}, {2048, 0.3}, {4100, 0.15}, {vocab - 8, 0.25}};
  std::vector<float> sparse(vocab, -inf);
  for (auto [token, p] : probabilities)
    sparse[token] = static_cast<float>(std::log(p));
  std::vector<float> full = sparse;
  for (float &logit : full)
    logit = std::max(logit, -30.0f);
  for (const auto &[values, topK] : {std::pair(sparse, 0), {full, 0}, {sparse, 3}, {full, 3}}) {
    SamplingOptions options = plain();
    options.seed = 42;
    options.topK = topK;
    Sampler sampler(options, vocab);
    std::map<size_t, int> counts;
    for (int i = 0; i < 20000; ++i)
      ++counts[static_cast<size_t>(*sampler.sample(values))];
    double kept = topK > 0 ? 0.75 : 1; // the probabilities of the three most likely ones
    for (auto [token, probability] : probabilities) {
      double p = topK > 0 && probability < 0.2 ? 0 : probability / kept;
      EXPECT_NEAR(counts[token], 20000 * p, 4 * std::sqrt(20000 * p * (1 - p))) << token;
      counts.erase(token);
    }
    EXPECT_TRUE(counts.empty());
  }
}

TEST(Sampler, SeedAndStreamDecideTheNumbers) {
  auto draw = [](uint64_t seed, uint64_t stream) {
    SamplingOptions options = plain();
    options.seed = seed;
    Sampler sampler(options, 4, stream);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 40; ++i)
      tokens.push_back(*sampler.sample(logits));
    return tokens;
  };
  EXPECT_EQ(draw(1, 0), draw(1, 0));
  EXPECT_NE(draw(1, 0), draw(2, 0));
  EXPECT_NE(draw(1, 0), draw(1, 1));
}

TEST(Random, IsSplitMix64) {
  // The reference implementation's first numbers from state 1234567.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}
} // namespace
