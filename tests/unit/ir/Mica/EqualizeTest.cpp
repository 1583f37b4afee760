//===- EqualizeTest.cpp - equalization factors ----------------------------===//

#include "ir/Mica/Equalize.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mica;
using testing::ElementsAre;

namespace {

TEST(EqualizationFactors, AreRoundedToPowersOfTwo) {
  // The median is 1.
  EXPECT_THAT(equalizationFactors({1, 4, 0.5f, 64}, {1, 1, 8, 1}), ElementsAre(1, 2, 0.25f, 8));
  EXPECT_THAT(equalizationFactors({1, 1.9f, 2, 7.9f, 8, 0.51f, 0.49f, 0.1f, 0.1f},
                                  {1, 1, 1, 1, 1, 1, 1, 1, 1}),
              ElementsAre(1, 1, 2, 2, 4, 1, 0.5f, 0.25f, 0.25f));
}

TEST(EqualizationFactors, AreRelativeToTheMedianOfTheRatios) {
  // Ratios on both sides of every power of two are not scaled; only outliers are.
  for (float scale : {1.0f, 1.9f, 2.0f, 0.25f, 1e-6f, 3e4f}) {
    std::vector<float> rows{1.9f, 2.1f, 1.95f, 50, 2.05f, 0.1f, 2};
    for (float &row : rows)
      row *= scale;
    EXPECT_THAT(equalizationFactors(rows, {1, 1, 1, 1, 1, 1, 1}),
                ElementsAre(1, 1, 1, 4, 1, 0.25f, 1))
        << scale;
  }
  EXPECT_THAT(equalizationFactors({7}, {1}), ElementsAre(1));
}

TEST(EqualizationFactors, TakeTheLowerOfTwoMiddleRatios) {
  EXPECT_THAT(equalizationFactors({1, 4}, {1, 1}), ElementsAre(1, 2));
  EXPECT_THAT(equalizationFactors({4, 1}, {1, 1}), ElementsAre(2, 1));
  EXPECT_THAT(equalizationFactors({64, 4, 1, 16}, {1, 1, 1, 1}), ElementsAre(4, 1, 0.5f, 2));
}

TEST(EqualizationFactors, FollowEveryPowerOfTwoExactly) {
  auto last = [](float row, float column) {
    return equalizationFactors({1, 1, 1, row}, {1, 1, 1, column})[3];
  };
  for (float row = 0.71f; row < 1.5f; row += 0.01f)
    for (int shift = -20; shift <= 20; ++shift)
      EXPECT_EQ(last(std::ldexp(row, shift), std::ldexp(1.1f, -shift)),
                std::ldexp(last(row, 1.1f), shift));
}

TEST(EqualizationFactors, AreOneWhereAChannelIsEmpty) {
  EXPECT_THAT(equalizationFactors({0, 1, 0, NAN, INFINITY}, {1, 0, 0, 1, 1}),
              ElementsAre(1, 1, 1, 1, 1));
  // Such channels do not change the median, which is 4.
  EXPECT_THAT(equalizationFactors({0, 0, 0, NAN, 4, 4, 16}, {1, 1, 1, 1, 1, 1, 1}),
              ElementsAre(1, 1, 1, 1, 1, 1, 2));
  EXPECT_THAT(equalizationFactors({1, 1, INFINITY, 4, 4, 16}, {0, 0, 1, 1, 1, 1}),
              ElementsAre(1, 1, 1, 1, 1, 2));
}

TEST(EqualizationFactors, AreNormalNumbersWhereChannelsAreExtreme) {
  EXPECT_THAT(equalizationFactors({3e38f, 1, 1e-45f}, {1e-45f, 1, 3e38f}),
              ElementsAre(0x1p127f, 1, 0x1p-126f));
  EXPECT_THAT(equalizationFactors({3e38f, 1e-45f}, {1e-45f, 3e38f}), ElementsAre(0x1p127f, 1));
}

TEST(EqualizationShares, AreRelativeToTheLargestOfTheRow) {
  std::vector<float> columns(3);
  raiseToShares(columns, {1, -4, 2});
  EXPECT_THAT(columns, ElementsAre(0.25f, 1, 0.5f));
  // The same row with another magnitude gives the same result; an empty one has no effect.
  raiseToShares(columns, {256, -1024, 512});
  raiseToShares(columns, {0, 0, 0});
  EXPECT_THAT(columns, ElementsAre(0.25f, 1, 0.5f));
  raiseToShares(columns, {-3, 1, 0});
  EXPECT_THAT(columns, ElementsAre(1, 1, 0.5f));
}

} // namespace
