#include "backends/runtime/engine/MtpRows.h"

#include <gmock/gmock.h>

using namespace mica::rt;
using testing::ElementsAre;

namespace {

/// Rows from position 5 with the tokens 50, 51, 52, whose states contain their positions.
MtpRows threeRows() {
  MtpRows rows;
  for (int32_t i = 0; i < 3; ++i) {
    float position = static_cast<float>(5 + i);
    rows.add(5 + i, 50 + i, std::vector<float>{position, -position});
  }
  return rows;
}

TEST(MtpRows, HaveTheTokenAfterThem) {
  MtpRows rows = threeRows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows.end(), 8);
  EXPECT_EQ(rows.tokenAfter(0, 99), 51);
  EXPECT_EQ(rows.tokenAfter(2, 99), 99);
  EXPECT_EQ(rows.position(2), 7);
  EXPECT_THAT(rows.state(1), ElementsAre(6, -6));
}

TEST(MtpRows, AreDroppedAtTheirBeginning) {
  MtpRows rows = threeRows();
  rows.drop(0);
  rows.drop(2);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.position(0), 7);
  EXPECT_THAT(rows.state(0), ElementsAre(7, -7));
  rows.drop(1);
  EXPECT_EQ(rows.size(), 0u);
  EXPECT_EQ(rows.end(), 8);
}

TEST(MtpRows, AreRewound) {
  MtpRows rows = threeRows();
  rows.rewind(9);
  EXPECT_EQ(rows.size(), 3u);
  rows.rewind(6);
  EXPECT_EQ(rows.end(), 6);
  EXPECT_THAT(rows.state(0), ElementsAre(5, -5));
  // Rows that the head has computed already are replaced.
  rows.rewind(3);
  EXPECT_EQ(rows.size(), 0u);
  EXPECT_EQ(rows.end(), 3);
  rows.add(3, 7, std::vector<float>{1, 2});
  EXPECT_EQ(rows.position(0), 3);
}

/// The rows in between are unknown.
TEST(MtpRows, BeginAnewAfterAGap) {
  MtpRows rows = threeRows();
  rows.add(10, 7, std::vector<float>{1, 2});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows.position(0), 10);
  EXPECT_THAT(rows.state(0), ElementsAre(1, 2));
}

} // namespace
