#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <array>
#include <gtest/gtest.h>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

namespace {
/// A model whose rows depend on the sequence length: beyond eight positions all are recomputed.
class RecomputeTest : public SchedulerFixture {
protected:
  std::string manifest() const override { return fakeManifestOfLengths(); }

  const Tokens text = {5, 3, 9, 1, 4, 4, 7, 2, 6, 8};
  Tokens begin(size_t count) const { return {text.begin(), text.begin() + count}; }
};

TEST_F(RecomputeTest, IsNotCountedAsDecodingTime) {
  open({.slots = 1, .promptRows = 2});
  // Calls without logits: two of three for the prompt, four that recompute.
  fakeDelay = std::chrono::milliseconds(100);
  Recorder recorder;
  submit(request(begin(6), 6), recorder);
  finishAll();
  EXPECT_EQ(recorder.tokens, fakeContinuation(begin(6), 6));
  Scheduler::Totals totals = scheduler->totals();
  EXPECT_EQ(totals.recomputedTokens, 8);
  EXPECT_GE(totals.recomputeSeconds, 0.4);
  EXPECT_LT(totals.decodeSeconds, 0.4);
  EXPECT_GE(totals.promptSeconds, 0.2);
  EXPECT_EQ(totals.decodeTokens, 5);
}

TEST_F(RecomputeTest, IsEndedByItsListener) {
  open({.slots = 1, .promptRows = 3});
  Recorder ending;
  // Two calls of the prompt, two tokens, the first call that recomputes.
  ending.onPoll = [] { return fakeCalls.size() < 5; };
  submit(request(begin(6), 9), ending);
  finishAll();
  Tokens made = fakeContinuation(begin(6), 3);
  EXPECT_EQ(ending.tokens, made);
  EXPECT_EQ(ending.result->tokens, made);
  EXPECT_EQ(ending.result->finish, Finish::Canceled);
  Scheduler::Totals totals = scheduler->totals();
  EXPECT_EQ(totals.decodeTokens, 2) << "computed, though forgotten since";
  EXPECT_EQ(totals.promptTokens, 6);
  EXPECT_EQ(totals.recomputedTokens, 3);
  ASSERT_EQ(scheduler->cachedTokens(0), 3);
  // The conversation continues with what the slot has cached.
  Tokens longer = begin(6);
  longer.insert(longer.end(), made.begin(), made.end());
  longer.push_back(11);
  EXPECT_EQ(reused(longer, 100), 3);
}

TEST_F(RecomputeTest, OfAPromptIsEndedByItsListener) {
  open({.slots = 1});
  Recorder first, ending;
  submit(request(begin(6), 1), first);
  finishAll();
  Scheduler::Totals before = scheduler->totals();
  // Before the prompt's next rows are queued, yes; before the others are recomputed, no.
  ending.onPoll = [asked = 0]() mutable { return ++asked <= 1; };
  Request longer = request(text, 3);
  longer.maxReused = 6;
  submit(longer, ending);
  finishAll();
  EXPECT_EQ((scheduler->totals() - before).promptTokens, 0);
  EXPECT_EQ(ending.result->finish, Finish::Canceled);
  EXPECT_TRUE(ending.tokens.empty());
  EXPECT_EQ(scheduler->cachedTokens(0), 6);
}

TEST_F(RecomputeTest, IsEndedByCancelling) {
  open({.slots = 1, .promptRows = 3});
  Recorder recorder;
  RequestId id = 0;
  // Two calls of the prompt, two tokens; before the first call that recomputes.
  recorder.onPoll = [&] {
    if (fakeCalls.size() == 4)
      scheduler->cancel(id);
    return true;
  };
  id = submit(request(begin(6), 9), recorder);
  finishAll();
  EXPECT_EQ(recorder.result->finish, Finish::Canceled);
  EXPECT_EQ(recorder.tokens, fakeContinuation(begin(6), 3));
  EXPECT_EQ(scheduler->totals().recomputedTokens, 3);
  EXPECT_EQ(scheduler->cachedTokens(0), 3);
}

/// Rows of other requests in the queue are computed anyway, as parts of texts of their lengths.
TEST_F(RecomputeTest, CancellingDoesNotStopOthersOfTheCall) {
  open({.slots = 2, .promptRows = 10, .promptsShareCalls = true});
  Recorder first, refusing, other;
  submit(request(begin(6), 1), first);
  finishAll();
  fakeCalls.clear();
  Request longer = request(text, 3);
  longer.maxReused = 6;
  Tokens prompt = {7, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5};
  // Called again after its rows were queued.
  refusing.onPoll = [asked = 0]() mutable { return ++asked < 2; };
  submit(longer, refusing);
  submit(request(prompt, 3), other);
  scheduler->step();
  ASSERT_TRUE(refusing.result);
  EXPECT_EQ(refusing.result->finish, Finish::Canceled);
  ASSERT_EQ(fakeCalls.size(), 1u);
  EXPECT_EQ(fakeCalls[0].rows.size(), 6u) << "what had room beside the four";
  finishAll();
  EXPECT_EQ(other.tokens, fakeContinuation(prompt, 3));
  EXPECT_EQ(scheduler->totals().recomputedTokens, 0);
}

/// Beyond the threshold, the positions of texts of different lengths have different frequencies.
class GrowingThetaTest : public SchedulerFixture {
protected:
  std::string manifest() const override {
    std::string text = fakeManifestOfLengths(60);
    return text.insert(text.rfind('}'), R"(, "rope_theta_grows": true)");
  }
};

TEST_F(GrowingThetaTest, OnlyPromptsOfTheSameLengthReusePositions) {
  open({.slots = 1});
  Tokens text = {5, 3, 9, 1, 4, 4, 7, 2, 6, 8}, longer = text;
  longer.push_back(3);
  EXPECT_EQ(reused(text, 100, 3), 0);
  EXPECT_EQ(reused(text, 100, 3), 9) << "the same prompt again";
  EXPECT_EQ(reused(longer, 100), 0);
  EXPECT_EQ(reused(text, 100), 0);
  Tokens turn = text, answer = fakeContinuation(text, 2);
  turn.insert(turn.end(), answer.begin(), answer.end());
  EXPECT_EQ(reused(turn, 100), 0) << "the next turn";
}

TEST_F(GrowingThetaTest, ShortTextsReusePositionsUntilTheyCrossTheThreshold) {
  open({.slots = 1});
  EXPECT_EQ(reused({5, 3, 9}, 100), 0);
  EXPECT_EQ(reused({5, 3, 9, 1, 4}, 100, 2), 3);
  EXPECT_EQ(reused({5, 3, 9, 1, 7}, 100, 6), 4);
  EXPECT_EQ(reused({5, 3, 9, 1, 7}, 100), 0) << "its positions have been recomputed for its answer";
}

TEST_F(GrowingThetaTest, OnlyPromptsOfTheSameLengthShareAPrefix) {
  open({.slots = 3, .promptRows = 12});
  Tokens text(50, 5), other = text, shorter = text, longer = text;
  other.back() = 6;
  shorter.resize(36);
  longer.push_back(6);
  std::array<Recorder, 3> recorders;
  auto submitPrompt = [&](const Tokens &prompt, Recorder &recorder) {
    Request next = request(prompt, 3);
    next.maxReused = 100;
    submit(next, recorder);
  };
  submitPrompt(text, recorders[0]);
  submitPrompt(other, recorders[1]);
  submitPrompt(shorter, recorders[2]);
  while (recorders[2].tokens.empty())
    ASSERT_TRUE(scheduler->step());
  EXPECT_TRUE(recorders[0].tokens.empty()) << "a prompt of another length does not wait";
  finishAll();
  EXPECT_EQ(scheduler->totals().promptTokens, 50 + 1 + 36);
  EXPECT_EQ(scheduler->totals().copiedTokens, 49);
  EXPECT_EQ(scheduler->totals().recomputedTokens, 0);
  EXPECT_EQ(recorders[0].tokens, fakeContinuation(text, 3));
  EXPECT_EQ(recorders[1].tokens, fakeContinuation(other, 3));
  EXPECT_EQ(recorders[2].tokens, fakeContinuation(shorter, 3));
  EXPECT_EQ(reused(longer, 100), 0);
  EXPECT_EQ(scheduler->totals().copiedTokens, 49);
}
} // namespace
