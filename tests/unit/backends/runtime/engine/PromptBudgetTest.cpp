#include "backends/runtime/engine/PromptBudget.h"

#include <gtest/gtest.h>
#include <vector>

using mica::rt::PromptBudget;

namespace {
constexpr int64_t maxRows = 256;

TEST(PromptBudgetTest, WithoutDecodingAllRows) {
  PromptBudget budget(maxRows);
  EXPECT_EQ(budget.rows(0, 1), maxRows);
  EXPECT_EQ(budget.rows(0, 9), maxRows);
}

TEST(PromptBudgetTest, BeginsWithTheMinimum) {
  EXPECT_EQ(PromptBudget(maxRows).rows(1, 1), PromptBudget::minRows);
  EXPECT_EQ(PromptBudget(3).rows(1, 1), 3);
}

/// The rows beside `numDecoding` requests after many steps, if decoding takes 0.01 s and a call
/// takes `fixed` plus `perRow` seconds for each row.
int64_t settled(double fixed, double perRow, size_t numDecoding, size_t numPrompts) {
  PromptBudget budget(maxRows);
  for (int step = 0; step < 200; ++step) {
    budget.addDecode(numDecoding, 0.01);
    int64_t rows = budget.rows(numDecoding, numPrompts);
    budget.addPrompt(rows, fixed + perRow * static_cast<double>(rows));
  }
  return budget.rows(numDecoding, numPrompts);
}

TEST(PromptBudgetTest, PromptsTakeAboutTheTimeOfDecoding) {
  // .002 s and .006 s for rows, together .8 of the time of decoding.
  EXPECT_NEAR(settled(.002, .0001, 4, 1), 60, 2);
  EXPECT_NEAR(settled(0, .0001, 4, 4), 80, 2);
  EXPECT_EQ(settled(0, 1e-6, 4, 1), maxRows);
}

TEST(PromptBudgetTest, TheTimeOfPromptsFollowsThatOfDecoding) {
  PromptBudget budget(maxRows);
  EXPECT_EQ(budget.seconds(3, 1), 0) << "not known";
  budget.addDecode(3, .01);
  EXPECT_NEAR(budget.seconds(3, 1), .008, 1e-9);
  EXPECT_NEAR(budget.seconds(3, 6), .016, 1e-9);
  EXPECT_NEAR(budget.seconds(3, 60), .032, 1e-9);
  EXPECT_EQ(budget.seconds(0, 1), 0);
}

/// The rows of a call that is interrupted, at a speed.
int64_t interruptibleRows(int64_t perSecond, int64_t maxRows) {
  PromptBudget budget(maxRows);
  budget.addPrompt(perSecond, 1);
  return budget.interruptibleRows();
}

TEST(PromptBudgetTest, InterruptedCallsTakeAQuarterOfASecond) {
  constexpr int64_t min = PromptBudget::minInterruptibleRows;
  EXPECT_EQ(PromptBudget(maxRows).interruptibleRows(), min) << "not known";
  EXPECT_EQ(interruptibleRows(4 * (3 * min + 7), maxRows), 3 * min);
  EXPECT_EQ(interruptibleRows(1, maxRows), min);
  EXPECT_EQ(interruptibleRows(1 << 20, maxRows), maxRows);
  EXPECT_EQ(interruptibleRows(1 << 20, 5), 5);
}

TEST(PromptBudgetTest, SlowPromptsGetTheMinimum) {
  EXPECT_EQ(settled(.02, .001, 4, 1), PromptBudget::minRows);
}

TEST(PromptBudgetTest, MorePromptsThanDecodingGetMoreTime) {
  EXPECT_NEAR(settled(0, .0001, 4, 6), 120, 3);
  EXPECT_NEAR(settled(0, .0001, 2, 4), 160, 4);
  EXPECT_NEAR(settled(0, .0002, 1, 3), settled(0, .0001, 2, 3), 2);
  EXPECT_NEAR(settled(0, .0002, 1, 7), 160, 4) << "at most four times the time";
}

TEST(PromptBudgetTest, FollowsTheTimesOfRecentSteps) {
  PromptBudget budget(maxRows);
  budget.addPrompt(100, .01);
  budget.addDecode(1, .01);
  EXPECT_EQ(budget.rows(1, 1), 100 * 8 / 10);
  for (int step = 0; step < 50; ++step)
    budget.addDecode(1, .02);
  EXPECT_NEAR(static_cast<double>(budget.rows(1, 1)), 160, 1);
  budget.addPrompt(0, .01);
  EXPECT_NEAR(static_cast<double>(budget.rows(1, 1)), 160, 1) << "a step without rows says nothing";
}

/// The rows that join the decoding for 4 requests after many calls, if a call takes `fixed` plus
/// `perRow` seconds for each row.
int64_t settledJoined(double fixed, double perRow, size_t numPrompts) {
  PromptBudget budget(maxRows);
  for (int call = 0; call < 200; ++call) {
    if (!budget.knowsDecode(4))
      budget.addDecode(4, fixed + 4 * perRow);
    int64_t rows = budget.rows(4, numPrompts, /*joined=*/true);
    budget.addJoined(4, 4, rows, fixed + perRow * static_cast<double>(4 + rows));
  }
  return budget.rows(4, numPrompts, /*joined=*/true);
}

TEST(PromptBudgetTest, JoinedPromptsTakeAboutTheTimeOfDecoding) {
  // .8 of .01 + .004 s.
  EXPECT_NEAR(settledJoined(.01, .001, 1), 11, 1);
  EXPECT_NEAR(settledJoined(.01, .001, 8), 22, 1);
  EXPECT_NEAR(settledJoined(0, .001, 1), 3, 1) << "fewer than the minimum of calls of their own";
}

/// Joined calls until decoding must be measured again.
int callsUntilMeasured(PromptBudget &budget) {
  int calls = 0;
  for (; budget.knowsDecode(4); ++calls)
    budget.addJoined(4, 4, 8, .02);
  return calls;
}

TEST(PromptBudgetTest, MeasuresDecodingAloneForEachNumberOfRequestsAndFromTimeToTime) {
  PromptBudget budget(maxRows);
  EXPECT_FALSE(budget.knowsDecode(4));
  std::vector<int> intervals;
  for (int measured = 0; measured < 5; ++measured) {
    budget.addDecode(4, .01);
    EXPECT_FALSE(budget.knowsDecode(5));
    intervals.push_back(callsUntilMeasured(budget));
  }
  EXPECT_EQ(intervals, (std::vector<int>{4, 8, 16, 32, 32}));
  budget.addDecode(5, .01);
  EXPECT_TRUE(budget.knowsDecode(5));
  EXPECT_FALSE(budget.knowsDecode(4)) << "each number of requests has its own time";
  budget.addDecode(4, .01);
  EXPECT_EQ(callsUntilMeasured(budget), 32);
}

TEST(PromptBudgetTest, TheNextTimeReplacesASlowFirstOne) {
  PromptBudget budget(maxRows);
  budget.addDecode(4, .1);
  budget.addDecode(4, .01);
  budget.addPrompt(100, .01);
  EXPECT_EQ(budget.rows(4, 1), 80);
  // A slow one later has less weight.
  budget.addDecode(4, .02);
  EXPECT_EQ(budget.rows(4, 1), 100);
}
} // namespace
