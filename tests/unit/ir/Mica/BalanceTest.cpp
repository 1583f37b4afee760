//===- BalanceTest.cpp - factors that make channels equal --------------------===//

#include "ir/Mica/Balance.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>

using namespace mica;
using testing::ElementsAre;

namespace {

TEST(BalanceFactors, AreThePowerOfTwoNextToTheRootOfTheRatio) {
  EXPECT_THAT(balanceFactors({1, 4, 0.5f, 64}, {1, 1, 8, 1}), ElementsAre(1, 2, 0.25f, 8));
  EXPECT_THAT(balanceFactors({1.9f, 2, 7.9f, 8, 0.51f, 0.49f}, {1, 1, 1, 1, 1, 1}),
              ElementsAre(1, 2, 2, 4, 1, 0.5f));
}

TEST(BalanceFactors, FollowEveryPowerOfTwoExactly) {
  for (float row = 0.71f; row < 1.5f; row += 0.01f)
    for (int shift = -20; shift <= 20; ++shift)
      EXPECT_EQ(balanceFactors({std::ldexp(row, shift)}, {std::ldexp(1.1f, -shift)})[0],
                std::ldexp(balanceFactors({row}, {1.1f})[0], shift));
}

TEST(BalanceFactors, AreOneWhereAChannelIsEmpty) {
  EXPECT_THAT(balanceFactors({0, 1, 0, NAN, INFINITY}, {1, 0, 0, 1, 1}),
              ElementsAre(1, 1, 1, 1, 1));
}

TEST(BalanceFactors, AreNormalNumbersWhereChannelsAreExtreme) {
  EXPECT_THAT(balanceFactors({3e38f, 1e-45f}, {1e-45f, 3e38f}), ElementsAre(0x1p127f, 0x1p-126f));
}

} // namespace
