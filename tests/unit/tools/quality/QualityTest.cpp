//===- QualityTest.cpp - perplexity and KL divergence of logits -----------===//

#include "tools/quality/Quality.h"

#include "gmock/gmock.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace mica::tool;

namespace mica::tool {
static bool operator==(const EvalWindow &a, const EvalWindow &b) {
  return a.begin == b.begin && a.length == b.length && a.first == b.first;
}
} // namespace mica::tool

namespace {

TEST(PlanWindows, CutsTheTextAndLeavesOutItsRest) {
  EXPECT_THAT(planWindows(20, 8, SIZE_MAX),
              testing::ElementsAre(EvalWindow{0, 8, 4}, EvalWindow{8, 8, 4}));
  EXPECT_EQ(planWindows(16, 8, SIZE_MAX).size(), 2u);
  EXPECT_EQ(planWindows(20, 8, SIZE_MAX)[0].scored(), 3u) << "positions 4, 5 and 6";
}

TEST(PlanWindows, StopsAtTheMaximum) { EXPECT_EQ(planWindows(2000, 8, 3).size(), 3u); }

TEST(PlanWindows, AShortTextIsOneWindow) {
  EXPECT_THAT(planWindows(5, 8, SIZE_MAX), testing::ElementsAre(EvalWindow{0, 5, 2}));
  EXPECT_THAT(planWindows(2, 8, SIZE_MAX), testing::ElementsAre(EvalWindow{0, 2, 0}));
  EXPECT_EQ(planWindows(2, 8, SIZE_MAX)[0].scored(), 1u);
}

TEST(PlanWindows, OneIdHasNothingToPredict) {
  EXPECT_TRUE(planWindows(1, 8, SIZE_MAX).empty());
  EXPECT_TRUE(planWindows(0, 8, SIZE_MAX).empty());
}

TEST(Mean, ComputesTheStandardError) {
  Mean mean;
  mean.add(1);
  EXPECT_EQ(mean.error(), 0);
  mean.add(2);
  mean.add(6);
  EXPECT_DOUBLE_EQ(mean.mean(), 3);
  // Variance 7 of three values.
  EXPECT_DOUBLE_EQ(mean.error(), std::sqrt(7.0 / 3));
}

std::vector<float> logsOf(std::vector<double> probabilities, double shift = 0) {
  std::vector<float> logits;
  for (double p : probabilities)
    logits.push_back(static_cast<float>(std::log(p) + shift));
  return logits;
}

TEST(Quality, PerplexityIsTheInverseOfTheGeometricMean) {
  Quality quality;
  EXPECT_TRUE(quality.add(logsOf({0.5, 0.25, 0.25}, 7), 0));
  EXPECT_TRUE(quality.add(logsOf({0.125, 0.5, 0.375}), 0));
  EXPECT_EQ(quality.positions(), 2u);
  EXPECT_NEAR(quality.perplexity(), 4, 1e-6);
}

TEST(Quality, PerplexityOfLogitsWithoutPreferenceIsTheVocabulary) {
  Quality quality;
  EXPECT_TRUE(quality.add(std::vector<float>(50, 1e6f), 3));
  EXPECT_NEAR(quality.perplexity(), 50, 1e-9);
}

TEST(Quality, DivergenceIsThatFromTheReference) {
  Quality quality;
  std::vector<double> p{0.25, 0.75}, q{0.5, 0.5};
  EXPECT_TRUE(quality.add(logsOf(p, 3), logsOf(q, -40), 1));
  // KL(q || p), not KL(p || q) = 0.1308.
  EXPECT_NEAR(quality.divergence().mean(), 0.5 * std::log(2) + 0.5 * std::log(2.0 / 3), 1e-6);
  EXPECT_NEAR(quality.perplexity(), 1 / 0.75, 1e-6);
  EXPECT_NEAR(quality.referencePerplexity(), 2, 1e-6);
}

TEST(Quality, EqualLogitsDoNotDiverge) {
  Quality quality;
  std::vector<float> logits{1.5f, -2.25f, 0.125f, 30.0f};
  EXPECT_TRUE(quality.add(logits, logits, 0));
  EXPECT_EQ(quality.maxDivergence(), 0);
  EXPECT_EQ(quality.rmsDeltaP(), 0);
  EXPECT_EQ(quality.sameTop(), 1);
}

TEST(Quality, RemembersWhereTheMaximumIs) {
  Quality quality;
  std::vector<float> a{0, 1}, b{0, 2}, c{5, 0};
  for (const std::vector<float> &reference : {a, c, b, a})
    EXPECT_TRUE(quality.add(a, reference, 0));
  EXPECT_EQ(quality.maxDivergenceAt(), 1u);
  EXPECT_DOUBLE_EQ(quality.sameTop(), 0.75);
}

/// Divergences of positions that can be distinguished: KL(q || p) for q = {1/2, 1/2} and p = {x, 1
/// - x}.
double addPosition(Quality &quality, double x) {
  EXPECT_TRUE(quality.add(logsOf({x, 1 - x}), logsOf({0.5, 0.5}), 0));
  return -0.5 * std::log(4 * x * (1 - x));
}

TEST(Quality, PercentilesAreExactAndInterpolated) {
  Quality quality;
  EXPECT_EQ(quality.divergencePercentile(0.99), 0) << "no positions";
  double only = addPosition(quality, 0.3);
  EXPECT_NEAR(quality.divergencePercentile(0.99), only, 1e-6);
  // 101 positions, in no order: percentile k is the k-th smallest.
  Quality many;
  std::vector<double> divergences;
  for (int i = 0; i <= 100; ++i)
    divergences.push_back(addPosition(many, 0.5 + 0.004 * (i * 37 % 101)));
  std::sort(divergences.begin(), divergences.end());
  EXPECT_NEAR(many.divergencePercentile(0), divergences[0], 1e-6);
  EXPECT_NEAR(many.divergencePercentile(0.5), divergences[50], 1e-6);
  EXPECT_NEAR(many.divergencePercentile(0.99), divergences[99], 1e-6);
  EXPECT_NEAR(many.divergencePercentile(0.999), 0.1 * divergences[99] + 0.9 * divergences[100],
              1e-6);
  EXPECT_EQ(many.divergencePercentile(1), many.maxDivergence());
}

TEST(Quality, DeltaPIsOfTheIdThatFollows) {
  Quality quality;
  EXPECT_TRUE(quality.add(logsOf({0.25, 0.75}, 5), logsOf({0.5, 0.5}), 1));      // +0.25
  EXPECT_TRUE(quality.add(logsOf({0.125, 0.875}), logsOf({0.25, 0.75}, -2), 0)); // -0.125
  EXPECT_NEAR(quality.rmsDeltaP(), std::sqrt((0.0625 + 0.015625) / 2), 1e-7);
}

TEST(Quality, TheFirstOfEqualLogitsIsTheTop) {
  Quality quality;
  EXPECT_TRUE(quality.add(std::vector<float>{2, 2, 0}, std::vector<float>{3, 0, 0}, 0));
  EXPECT_EQ(quality.sameTop(), 1);
}

TEST(Quality, RefusesNonFiniteValues) {
  float infinity = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  std::vector<float> good{1, 2};
  Quality quality;
  for (float bad : {infinity, -infinity, nan}) {
    EXPECT_FALSE(quality.add(std::vector<float>{0, bad}, 0));
    EXPECT_FALSE(quality.add(std::vector<float>{bad, 0}, good, 0));
    EXPECT_FALSE(quality.add(good, std::vector<float>{bad, 0}, 0));
  }
  EXPECT_EQ(quality.positions(), 0u);
}

} // namespace
