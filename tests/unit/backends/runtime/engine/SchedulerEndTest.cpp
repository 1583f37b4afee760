#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <deque>
#include <gmock/gmock.h>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
using SchedulerEndTest = SchedulerFixture;

/// Three texts of one call, of which the middle one fails.
TEST_F(SchedulerEndTest, AnErrorOfAListenerFailsItsRequestAlone) {
  open({.slots = 3});
  std::deque<Recorder> recorders(3);
  for (int32_t i = 0; i < 3; ++i)
    submit(request({4, i}, 4), recorders[i]);
  scheduler->step();
  for (Recorder &recorder : recorders)
    EXPECT_EQ(recorder.tokens.size(), 1u);
  recorders[1].onToken = [](int32_t, auto) { return Error{"broken"}; };
  finishAll();
  EXPECT_EQ(recorders[1].result->finish, Finish::Failed);
  EXPECT_EQ(recorders[1].result->tokens.size(), 2u);
  for (int32_t i : {0, 2})
    EXPECT_EQ(recorders[i].tokens, fakeContinuation({4, i}, 4)) << i;
}

TEST_F(SchedulerEndTest, AFailingPromptFailsAlone) {
  open({.slots = 3});
  std::deque<Recorder> recorders(3);
  submit(request({4, 1}, 4), recorders[0]);
  submit(request({4, fakePoison}, 4), recorders[1]);
  submit(request({4, 2}, 4), recorders[2]);
  finishAll();
  EXPECT_EQ(recorders[1].result->finish, Finish::Failed);
  EXPECT_THAT(recorders[1].result->error.message, HasSubstr("not finite"));
  EXPECT_TRUE(recorders[1].tokens.empty());
  EXPECT_EQ(recorders[0].tokens, fakeContinuation({4, 1}, 4));
  EXPECT_EQ(recorders[2].tokens, fakeContinuation({4, 2}, 4));
}

TEST_F(SchedulerEndTest, AWaitingRequestIsCancelledWithoutASlot) {
  open({.slots = 1});
  Recorder first, second, third;
  submit(request({1}, 3), first);
  RequestId id = submit(request({2}, 3), second);
  submit(request({3}, 3), third);
  scheduler->step();
  scheduler->cancel(id);
  EXPECT_FALSE(second.result) << "not before the next step";
  scheduler->step();
  ASSERT_TRUE(second.result);
  EXPECT_EQ(second.result->finish, Finish::Canceled);
  finishAll();
  EXPECT_EQ(first.tokens, fakeContinuation({1}, 3));
  EXPECT_EQ(third.tokens, fakeContinuation({3}, 3));
  // Ended requests do not change.
  scheduler->cancel(id);
  EXPECT_FALSE(scheduler->step());
}

TEST_F(SchedulerEndTest, ACancelledPromptKeepsComputedRows) {
  open({.slots = 1, .promptRows = 2});
  Recorder first;
  Tokens prompt = {1, 2, 3, 4, 5, 6};
  RequestId id = submit(request(prompt, 3), first);
  scheduler->step();
  scheduler->step();
  scheduler->cancel(id);
  EXPECT_FALSE(scheduler->step());
  EXPECT_EQ(first.result->finish, Finish::Canceled);
  EXPECT_EQ(scheduler->cachedTokens(0), 4);
  EXPECT_EQ(reused(prompt, 6), 4);
}

TEST_F(SchedulerEndTest, AListenerMayCancelAndSubmit) {
  open({.slots = 2});
  Recorder first, second, third;
  RequestId id = submit(request({2}, 9), second);
  first.onToken = [&](int32_t, auto) {
    if (first.tokens.size() == 2)
      scheduler->cancel(id);
    return true;
  };
  first.onFinish = [&] { submit(request({7}, 2), third); };
  submit(request({1}, 3), first);
  finishAll();
  EXPECT_EQ(second.result->finish, Finish::Canceled);
  EXPECT_LT(second.tokens.size(), 4u);
  EXPECT_EQ(first.tokens, fakeContinuation({1}, 3));
  EXPECT_EQ(third.tokens, fakeContinuation({7}, 2));
}

TEST_F(SchedulerEndTest, AListenerMayEndItsText) {
  open({.slots = 1});
  Recorder stopping;
  stopping.onToken = [&](int32_t, auto) { return stopping.tokens.size() < 3; };
  // It comes before the length.
  submit(request({1, 5}, 3), stopping);
  finishAll();
  EXPECT_EQ(stopping.result->finish, Finish::StopSequence);
  EXPECT_EQ(stopping.result->tokens, fakeContinuation({1, 5}, 3));
  // An end token comes before it.
  Recorder ending;
  ending.onToken = [](int32_t, auto) { return false; };
  Request ends = request({27}, 3);
  ends.settings.ignoreEos = false;
  submit(ends, ending);
  finishAll();
  EXPECT_EQ(ending.result->finish, Finish::EndToken);
  EXPECT_THAT(ending.tokens, ElementsAre(fakeEos));
}
} // namespace
