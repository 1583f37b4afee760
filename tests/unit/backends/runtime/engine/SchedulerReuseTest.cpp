#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <deque>
#include <gmock/gmock.h>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;

namespace {
using SchedulerReuseTest = SchedulerFixture;

TEST_F(SchedulerReuseTest, CachedPrefixesAreReused) {
  open({.slots = 2});
  Recorder first, other;
  submit(request({9, 9}, 2), other);
  submit(request({1, 5, 3}, 3), first);
  finishAll();
  EXPECT_EQ(scheduler->cachedTokens(1), 5) << "the last token has not been computed";
  Tokens prompt = {1, 5, 3};
  prompt.insert(prompt.end(), first.tokens.begin(), first.tokens.end());
  prompt.push_back(4);
  fakeCalls.clear();
  EXPECT_EQ(reused(prompt, 100), 5);
  EXPECT_THAT(fakeCalls[0].rows, ElementsAre(Row{first.tokens[2], 1, 5}, Row{4, 1, 6}));
  EXPECT_EQ(scheduler->totals().promptTokens, 2 + 3 + 2);
}

TEST_F(SchedulerReuseTest, OnlyEqualPrefixesAreReused) {
  open({.slots = 1});
  EXPECT_EQ(reused({1, 5, 3, 8}, 100), 0);
  EXPECT_EQ(reused({1, 5, 4, 8}, 100), 2);
  EXPECT_EQ(reused({1, 5, 4, 8}, 100), 3) << "the last row has the logits";
  EXPECT_EQ(reused({1, 5, 4, 8}, 1), 1);
  EXPECT_EQ(reused({1, 5, 4, 8}, 0), 0);
  EXPECT_EQ(reused({1, 5}, 100, 0), 1);
  EXPECT_EQ(reused({1, 5, 4}, 100), 2) << "and no more, though the slot has had more";
}

TEST_F(SchedulerReuseTest, PicksTheSlotWithTheLongestPrefix) {
  open({.slots = 3});
  std::vector<Tokens> prompts = {{1, 5, 3}, {1, 5, 4, 8}, {7}};
  std::deque<Recorder> recorders(5);
  for (size_t i = 0; i < 3; ++i)
    submit(request(prompts[i], 1), recorders[i]);
  finishAll();
  fakeCalls.clear();
  Request longer = request({1, 5, 4, 8, 6}, 1);
  longer.maxReused = 4;
  submit(longer, recorders[3]);
  finishAll();
  EXPECT_THAT(calls(), ElementsAre(ElementsAre(Row{6, 1, 4})));
  // A request that continues no text takes the least recently used slot.
  submit(request({9}, 1), recorders[4]);
  finishAll();
  EXPECT_THAT(calls()[1], ElementsAre(Row{9, 0, 0}));
}

// A system prompt, for example.
TEST_F(SchedulerReuseTest, ACommonPrefixCostsNoOtherTextItsCache) {
  open({.slots = 3});
  Tokens first = {1, 5, 3, 8, 6, 4}, second = {1, 5, 9, 7, 2, 3}, third = {1, 5, 2, 2, 2, 2};
  auto next = [](Tokens text) {
    text.push_back(4);
    return text;
  };
  EXPECT_EQ(reused(first, 100), 0);
  EXPECT_EQ(reused(second, 100), 0) << "two positions of the first, but a slot is unused";
  EXPECT_EQ(reused(third, 100), 0);
  EXPECT_EQ(reused(next(first), 100), 6);
  EXPECT_EQ(reused(next(second), 100), 6);
  EXPECT_EQ(reused({1, 5, 8, 8, 8}, 100), 2) << "of the third, the least recently used";
  EXPECT_EQ(reused(next(next(first)), 100), 7);
}

// A question that is shorter than the system prompt before it.
TEST_F(SchedulerReuseTest, ALongCommonPrefixCostsNoOtherTextItsCache) {
  open({.slots = 2});
  Recorder answered;
  submit(request({1, 5, 3, 8, 6, 4}, 8), answered);
  finishAll();
  EXPECT_EQ(reused({1, 5, 3, 8, 9, 9}, 100), 0) << "four of six positions, but a slot is unused";
}

// A long answer that is generated again.
TEST_F(SchedulerReuseTest, APromptWithALongAnswerIsReused) {
  open({.slots = 2});
  Recorder answered;
  submit(request({1, 5, 3, 8}, 12), answered);
  finishAll();
  EXPECT_EQ(reused({1, 5, 3, 8}, 100), 3) << "although it is a small part of the cached text";
}

TEST_F(SchedulerReuseTest, AFailureLeavesNothingToReuse) {
  open({.slots = 1});
  Recorder failing;
  failing.onToken = [](int32_t, auto) { return Error{"no more"}; };
  submit(request({1, 5, 3}, 2), failing);
  finishAll();
  EXPECT_EQ(failing.result->finish, Finish::Failed);
  EXPECT_EQ(failing.result->error.message, "no more");
  EXPECT_EQ(scheduler->cachedTokens(0), 0);
  EXPECT_EQ(reused({1, 5, 3}, 3), 0);
}
} // namespace
