#include "backends/runtime/profile/Profile.h"
#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <gmock/gmock.h>
#include <limits>
#include <new>
#include <set>
#include <thread>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {
using SchedulerTest = SchedulerFixture;

TEST_F(SchedulerTest, DecodingContinuesDuringALongPrompt) {
  open({.slots = 2, .promptRows = 3});
  Recorder first, second;
  submit(request({1, 5}, 4), first);
  EXPECT_TRUE(scheduler->step());
  EXPECT_EQ(first.tokens.size(), 1u);
  submit(request({9, 8, 7, 6, 5, 4, 3}, 2), second);
  scheduler->step();
  scheduler->step();
  EXPECT_EQ(first.tokens.size(), 3u);
  EXPECT_TRUE(second.tokens.empty());
  scheduler->step();
  EXPECT_EQ(first.tokens, fakeContinuation({1, 5}, 4));
  EXPECT_EQ(second.tokens.size(), 1u);
  finishAll();
  EXPECT_EQ(second.tokens, fakeContinuation({9, 8, 7, 6, 5, 4, 3}, 2));
  // Each role has separate calls, decoding before prefill.
  Tokens t = first.tokens;
  EXPECT_THAT(calls(), ElementsAre(ElementsAre(Row{1, 0, 0}, Row{5, 0, 1}), //
                                   ElementsAre(Row{t[0], 0, 2}),
                                   ElementsAre(Row{9, 1, 0}, Row{8, 1, 1}, Row{7, 1, 2}),
                                   ElementsAre(Row{t[1], 0, 3}),
                                   ElementsAre(Row{6, 1, 3}, Row{5, 1, 4}, Row{4, 1, 5}),
                                   ElementsAre(Row{t[2], 0, 4}), ElementsAre(Row{3, 1, 6}),
                                   ElementsAre(Row{second.tokens[0], 1, 7})));
  for (size_t call = 0; call < fakeCalls.size(); ++call)
    EXPECT_EQ(fakeCalls[call].role == RowRole::Prompt, call % 2 == 0 && call < 7) << call;
}

TEST_F(SchedulerTest, PromptsWithinTheBudgetAreOfOneStep) {
  open({.slots = 4, .promptRows = 5});
  std::deque<Recorder> recorders(4);
  for (const Tokens &prompt : std::vector<Tokens>{{1, 2}, {3, 4, 5}, {6}, {7, 8, 9, 1, 2, 3}})
    submit(request(prompt, 2), recorders[prompt.size() == 6 ? 3 : prompt[0] / 3]);
  scheduler->step();
  EXPECT_THAT(calls(), ElementsAre(testing::SizeIs(2), testing::SizeIs(3)))
      << "each in a call of its own";
  fakeCalls.clear();
  scheduler->step();
  // Two texts; the third prompt needs five rows, for which there is no space.
  EXPECT_THAT(calls(), ElementsAre(testing::SizeIs(2), testing::SizeIs(1)));
  finishAll();
  EXPECT_EQ(recorders[3].tokens, fakeContinuation({7, 8, 9, 1, 2, 3}, 2));
}

TEST_F(SchedulerTest, PromptsAlternate) {
  open({.slots = 3, .promptRows = 3});
  Recorder text, longer, other, shorter;
  submit(request({1}, 12), text);
  scheduler->step();
  submit(request(Tokens(15, 7), 2), longer);
  submit(request(Tokens(14, 8), 2), other);
  submit(request({5, 6}, 2), shorter); // waits for a slot
  size_t step = 0, first = 0;
  for (; longer.tokens.empty() || other.tokens.empty(); ++step) {
    ASSERT_LT(step, 20u);
    size_t tokens = text.tokens.size();
    scheduler->step();
    EXPECT_EQ(text.tokens.size(), tokens + 1) << "a text in progress has a token in each step";
    if (first == 0 && !other.tokens.empty())
      first = step;
  }
  EXPECT_EQ(step, 10u) << "five chunks each";
  EXPECT_EQ(first, 9u);
  scheduler->step();
  finishAll();
  EXPECT_EQ(text.tokens, fakeContinuation({1}, 12));
  EXPECT_EQ(longer.tokens, fakeContinuation(Tokens(15, 7), 2));
  EXPECT_EQ(shorter.tokens, fakeContinuation({5, 6}, 2));

  // A later one does not wait for the end of earlier ones.
  Recorder again, late;
  submit(request(Tokens(15, 9), 1), again);
  scheduler->step();
  submit(request({4, 3, 2, 1}, 1), late);
  for (int i = 0; i < 4; ++i)
    scheduler->step();
  EXPECT_TRUE(late.result);
  EXPECT_FALSE(again.result);
  finishAll();
  EXPECT_EQ(again.tokens, fakeContinuation(Tokens(15, 9), 1));
}

TEST_F(SchedulerTest, SlotsAreReused) {
  open({.slots = 2});
  std::deque<Recorder> recorders(7);
  std::vector<Tokens> prompts;
  for (int32_t i = 0; i < 7; ++i) {
    prompts.push_back({i, 5, 9 - i});
    submit(request(prompts.back(), 1 + i % 3), recorders[i]);
  }
  finishAll();
  for (size_t i = 0; i < 7; ++i)
    EXPECT_EQ(recorders[i].tokens, fakeContinuation(prompts[i], 1 + i % 3)) << i;
  std::set<int32_t> sequences;
  for (const FakeCall &call : fakeCalls)
    for (const Row &row : call.rows)
      sequences.insert(row.sequence);
  EXPECT_THAT(sequences, ElementsAre(0, 1));
}

TEST_F(SchedulerTest, RequestsTakeTurnsWithThoseOfALeader) {
  open({.slots = 2});
  // Six requests with a leader, and later two others.
  std::deque<Recorder> recorders(8);
  std::vector<size_t> order;
  for (size_t i = 0; i < recorders.size(); ++i)
    recorders[i].onFinish = [&, i] { order.push_back(i); };
  std::vector<Tokens> prompts;
  for (int32_t i = 0; i < 8; ++i)
    prompts.push_back({i, 5, 9 - i});
  RequestId leader = submit(request(prompts[0], 3), recorders[0]);
  for (size_t i = 1; i < 6; ++i)
    EXPECT_TRUE(scheduler->submit(request(prompts[i], 3), recorders[i], leader));
  scheduler->step();
  submit(request(prompts[6], 3), recorders[6]);
  submit(request(prompts[7], 3), recorders[7]);
  finishAll();
  EXPECT_THAT(order, ElementsAre(0, 1, 6, 7, 2, 3, 4, 5));
  for (size_t i = 0; i < 8; ++i)
    EXPECT_EQ(recorders[i].tokens, fakeContinuation(prompts[i], 3)) << i;
}

TEST_F(SchedulerTest, TokensComeWithTheLogitsOfTheModel) {
  open({.slots = 1});
  Recorder recorder;
  Tokens tops;
  recorder.onToken = [&](int32_t, std::span<const float> logits) {
    tops.push_back(*argmax(logits));
    return true;
  };
  // Biases and penalties do not affect them.
  Request biased = request({1, 5}, 3);
  biased.settings.logitBias = {{9, 100}};
  submit(biased, recorder);
  finishAll();
  EXPECT_THAT(recorder.tokens, ElementsAre(9, 9, 9));
  EXPECT_THAT(tops, ElementsAre(fakeNext({1, 5}), fakeNext({1, 5, 9}), fakeNext({1, 5, 9, 9})));
}

TEST_F(SchedulerTest, RequestsSampleAtTheSameTime) {
  open({.slots = 2, .promptsShareCalls = true});
  std::array<Recorder, 2> recorders;
  std::atomic<int> arrived = 0;
  auto waitForBoth = [&](int32_t token, std::span<const float> logits) -> Status {
    EXPECT_EQ(*argmax(logits), token);
    int both = (arrived.fetch_add(1) / 2 + 1) * 2;
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (arrived < both && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    EXPECT_GE(arrived, both) << "one is sampled after the other";
    return {};
  };
  for (int32_t i = 0; i < 2; ++i) {
    recorders[i].onSampled = waitForBoth;
    submit(request({1, 5 + i}, 3), recorders[i]);
  }
  finishAll();
  EXPECT_EQ(recorders[0].tokens, fakeContinuation({1, 5}, 3));
  EXPECT_EQ(recorders[1].tokens, fakeContinuation({1, 6}, 3));
}

TEST_F(SchedulerTest, ARequestWithoutMemoryToSampleFails) {
  open({.slots = 2, .promptsShareCalls = true});
  Recorder failing, other;
  failing.onSampled = [](auto...) -> Status { throw std::bad_alloc(); };
  submit(request({1, 5}, 3), failing);
  submit(request({1, 6}, 3), other);
  finishAll();
  EXPECT_EQ(failing.result->finish, Finish::Failed);
  EXPECT_EQ(failing.result->error.message, "out of memory");
  EXPECT_EQ(other.tokens, fakeContinuation({1, 6}, 3));
}

TEST_F(SchedulerTest, DraftsShareCallsWithOtherRequests) {
  open({.slots = 3});
  Recorder repeating, wrong, plain;
  Request drafts = request({3, 4, 5, 3, 4, 5}, 9);
  drafts.settings.lookup = 8;
  drafts.forcedTokens = {3, 4, 5};
  submit(drafts, repeating);
  drafts.prompt = {3, 4, 5, 3};
  drafts.forcedTokens = {4, 9, 9, 9};
  submit(drafts, wrong);
  submit(request({2}, 9), plain);
  finishAll();
  EXPECT_EQ(repeating.tokens, (Tokens{3, 4, 5, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(wrong.tokens, (Tokens{4, 9, 9, 9, 4, 9, 9, 9, 4}));
  EXPECT_EQ(plain.tokens, fakeContinuation({2}, 9));
  EXPECT_GT(repeating.result->accepted, 2);
  EXPECT_EQ(repeating.result->accepted, repeating.result->drafted);
  EXPECT_LT(wrong.result->accepted, wrong.result->drafted);
  EXPECT_EQ(plain.result->drafted, 0);
  Scheduler::Totals totals = scheduler->totals();
  EXPECT_EQ(totals.drafted, repeating.result->drafted + wrong.result->drafted);
  EXPECT_EQ(totals.decodeTokens, 3 * 8);
  for (const FakeCall &call : fakeCalls)
    EXPECT_LE(call.rows.size(), 6u) << "the program computes six rows alike";
}

TEST_F(SchedulerTest, ImpossibleRequestsAreRefusedAtOnce) {
  open({.slots = 1});
  Recorder silent;
  auto refusal = [&](const Request &request) {
    auto id = scheduler->submit(request, silent);
    return id ? std::string() : id.error().message;
  };
  EXPECT_THAT(refusal(request({}, 1)), HasSubstr("no tokens"));
  EXPECT_THAT(refusal(request(Tokens(21, 1), 1)),
              HasSubstr("the prompt has 21 tokens, 1 more than the context of 20 positions"));
  EXPECT_THAT(refusal(request({1, 32}, 1)), HasSubstr("token 32 is not in the model's vocabulary"));
  Request forced = request({1}, 1);
  forced.forcedTokens = {32};
  EXPECT_THAT(refusal(forced), HasSubstr("token 32 is not in the model's vocabulary"));
  Request hot = request({1}, 1);
  hot.settings.temperature = -1;
  EXPECT_THAT(refusal(hot), HasSubstr("temperature is -1"));
  EXPECT_FALSE(scheduler->step());
  EXPECT_FALSE(silent.result);
  EXPECT_TRUE(fakeCalls.empty());
}

TEST_F(SchedulerTest, ForcedTokensNeedNoPrompt) {
  open({.slots = 1});
  Recorder recorder;
  Request forced = request({}, 4);
  forced.forcedTokens = {5, 6, 7};
  submit(forced, recorder);
  finishAll();
  EXPECT_THAT(recorder.tokens, ElementsAre(5, 6, 7, 5));
  EXPECT_THAT(calls(), ElementsAre(ElementsAre(Row{5, 0, 0}), ElementsAre(Row{6, 0, 1}),
                                   ElementsAre(Row{7, 0, 2})));
  // After the slot's cached positions as well.
  fakeCalls.clear();
  Recorder next;
  forced.prompt = {5, 6};
  forced.maxReused = 2;
  submit(forced, next);
  finishAll();
  EXPECT_EQ(next.result->reusedTokens, 2);
  EXPECT_THAT(calls()[0], ElementsAre(Row{5, 0, 2}));
}

TEST_F(SchedulerTest, ARandomSeedIsReported) {
  open({.slots = 2});
  Recorder drawn, again;
  Request random = request({1, 5}, 6);
  random.settings.temperature = 5;
  random.settings.topP = 1;
  random.settings.topK = 0;
  random.settings.seed.reset();
  random.settings.logitBias = {{fakePoison, -std::numeric_limits<float>::infinity()}};
  submit(random, drawn);
  finishAll();
  random.settings.seed = drawn.result->seed;
  submit(random, again);
  finishAll();
  EXPECT_EQ(again.tokens, drawn.tokens);
}

TEST_F(SchedulerTest, StreamsTellRequestsWithTheSameSeedApart) {
  open({.slots = 3});
  std::deque<Recorder> recorders(3);
  Request random = request({1, 5}, 8);
  random.settings.temperature = 5;
  random.settings.topP = 1;
  random.settings.topK = 0;
  random.settings.seed = 3;
  random.settings.logitBias = {{fakePoison, -std::numeric_limits<float>::infinity()}};
  submit(random, recorders[0]);
  submit(random, recorders[1]);
  random.stream = 1;
  submit(random, recorders[2]);
  finishAll();
  EXPECT_EQ(recorders[1].tokens, recorders[0].tokens);
  EXPECT_NE(recorders[2].tokens, recorders[0].tokens);
}

TEST_F(SchedulerTest, RequestsComeFromOtherThreads) {
  open({.slots = 3, .promptRows = 4});
  constexpr int32_t count = 40;
  std::deque<Recorder> recorders(size_t(2) * count);
  auto send = [&](int32_t from) {
    for (int32_t i = from; i < from + count; ++i) {
      RequestId id = submit(request({i % 20, 5}, 5), recorders[i]);
      if (i % 3 == 0)
        scheduler->cancel(id);
    }
  };
  std::thread one(send, 0), two(send, count);
  auto left = [&] {
    return std::any_of(recorders.begin(), recorders.end(),
                       [](const Recorder &recorder) { return !recorder.result; });
  };
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (left() && std::chrono::steady_clock::now() < end)
    scheduler->step();
  one.join();
  two.join();
  ASSERT_FALSE(left());
  for (int32_t i = 0; i < 2 * count; ++i) {
    Tokens all = fakeContinuation({i % 20, 5}, 5);
    // The model predicts the poisonous token for some, and nothing after it.
    auto computed = std::find(all.begin(), all.end() - 1, fakePoison) + 1;
    const RequestResult &result = *recorders[i].result;
    size_t size = recorders[i].tokens.size();
    if (result.finish == Finish::Canceled) {
      EXPECT_EQ(i % 3, 0);
      ASSERT_LE(size, all.size());
    } else {
      EXPECT_EQ(result.finish, computed == all.end() ? Finish::Length : Finish::Failed);
      EXPECT_EQ(size, static_cast<size_t>(computed - all.begin()));
    }
    EXPECT_EQ(recorders[i].tokens, Tokens(all.begin(), all.begin() + size));
  }
}

Request withLimitedGaps(Request request) {
  request.limitGaps = true;
  return request;
}

// A call that cannot be interrupted, here since a profile is recorded. Before anything is known
// about times, a prompt gets the minimum beside a text that is decoded.
TEST_F(SchedulerTest, LimitsPromptsBesideDecoding) {
  Profile profile([&](const char *name) { return model->symbol(name); }, model->runtime(), false);
  profile.start();
  constexpr size_t min = PromptBudget::minRows, max = 2 * min;
  open({.slots = 3, .promptRows = max, .promptsShareCalls = true});
  std::deque<Recorder> recorders(3);
  submit(withLimitedGaps(request({1, 2}, 9)), recorders[0]);
  scheduler->step();
  submit(request(Tokens(min + 4, 5), 1), recorders[1]);
  submit(request({4, 3}, 1), recorders[2]);
  fakeCalls.clear();
  scheduler->step();
  ASSERT_EQ(fakeCalls.size(), 2) << "a step decodes, and computes all prompts in one call";
  EXPECT_EQ(fakeCalls[0].rows.size(), 1);
  EXPECT_EQ(fakeCalls[1].rows.size(), min);
  finishAll();
  for (const FakeCall &call : fakeCalls)
    EXPECT_LE(call.rows.size(), max);
  EXPECT_EQ(scheduler->totals().interruptions, 0);
  profile.stop();
}

TEST_F(SchedulerTest, PromptsJoinTheCallThatDecodes) {
  open({.slots = 3, .promptRows = 12, .promptsShareCalls = true, .promptsJoinDecode = true});
  Recorder text, first, second;
  submit(request({1, 5}, 4), text);
  scheduler->step();
  submit(request({9, 8, 7}, 2), first);
  submit(request({4, 3, 2, 6, 1, 8, 5, 9, 7}, 2), second);
  int32_t newest = text.tokens[0];
  fakeCalls.clear();
  scheduler->step();
  EXPECT_THAT(calls(),
              ElementsAre(ElementsAre(Row{newest, 0, 2}, Row{9, 1, 0}, Row{8, 1, 1}, Row{7, 1, 2},
                                      Row{4, 2, 0}, Row{3, 2, 1}, Row{2, 2, 2}, Row{6, 2, 3},
                                      Row{1, 2, 4}, Row{8, 2, 5}, Row{5, 2, 6}, Row{9, 2, 7})))
      << "at most twelve rows";
  EXPECT_EQ(text.tokens.size(), 2u);
  EXPECT_EQ(first.tokens.size(), 1u);
  EXPECT_EQ(scheduler->totals().promptTokens, 2 + 11);
  scheduler->step();
  EXPECT_EQ(fakeCalls.size(), 2u);
  finishAll();
  EXPECT_EQ(text.tokens, fakeContinuation({1, 5}, 4));
  EXPECT_EQ(first.tokens, fakeContinuation({9, 8, 7}, 2));
  EXPECT_EQ(second.tokens, fakeContinuation({4, 3, 2, 6, 1, 8, 5, 9, 7}, 2));
}

TEST_F(SchedulerTest, PromptsDoNotJoinAFullCall) {
  stepWithAPrompt(PromptBudget::minRows);
  EXPECT_THAT(calls(), ElementsAre(testing::SizeIs(1), testing::SizeIs(3)));
}

class DependingOnRoleTest : public SchedulerFixture {
  std::string manifest() const override { return dependingOnRole(fakeManifest()); }
};

TEST_F(DependingOnRoleTest, PromptsDoNotJoin) {
  stepWithAPrompt(16);
  ASSERT_EQ(fakeCalls.size(), 2u);
  EXPECT_EQ(fakeCalls[0].role, RowRole::Decode);
  EXPECT_EQ(fakeCalls[1].role, RowRole::Prompt);
}

// The time of decoding alone is measured before prompts join it.
TEST_F(SchedulerTest, LimitsPromptsThatJoin) {
  constexpr int64_t least = PromptBudget::minRows;
  open({.slots = 2, .promptRows = 2 * least, .promptsShareCalls = true, .promptsJoinDecode = true});
  Recorder text, other;
  submit(withLimitedGaps(request({1, 2}, 9)), text);
  scheduler->step();
  submit(request(Tokens(least + 4, 5), 1), other);
  fakeCalls.clear();
  scheduler->step();
  scheduler->step();
  ASSERT_EQ(fakeCalls.size(), 2u);
  EXPECT_EQ(fakeCalls[0].rows.size(), 1u);
  EXPECT_EQ(fakeCalls[1].rows.size(), 1u + least);
  finishAll();
  EXPECT_EQ(other.tokens, fakeContinuation(Tokens(least + 4, 5), 1));
}

class LongContextTest : public SchedulerFixture {
protected:
  std::string manifest() const override { return fakeManifest("", fakeVocab, 1000); }

  /// A time until the first kernel of a call that is longer than that of decoding.
  static constexpr std::chrono::milliseconds longer{30};
};

// Only a text whose tokens are awaited limits the prompts of others.
TEST_F(LongContextTest, PromptsGetAllRowsUnlessGapsAreLimited) {
  for (bool isLimited : {false, true}) {
    SCOPED_TRACE(isLimited);
    constexpr size_t max = 2 * PromptBudget::minInterruptibleRows;
    open({.slots = 3, .promptRows = max, .promptsShareCalls = true});
    Recorder text, awaited, other;
    submit(request({1, 2}, 9), text);
    Request next = request({2, 1}, 9);
    submit(isLimited ? withLimitedGaps(next) : next, awaited);
    scheduler->step();
    submit(request(Tokens(max + 2, 5), 1), other);
    fakeCalls.clear();
    fakeDelay = longer;
    scheduler->step();
    fakeDelay = {};
    ASSERT_GE(fakeCalls.size(), 2u);
    EXPECT_EQ(fakeCalls[1].rows.size(), isLimited ? PromptBudget::minInterruptibleRows : max);
    EXPECT_EQ(scheduler->totals().interruptions > 0, isLimited);
    finishAll();
  }
}

// A step decodes, and then computes the prompts in one call, in which it decodes as well.
TEST_F(LongContextTest, CallsForPromptsAreInterruptedToDecode) {
  constexpr size_t rows = PromptBudget::minInterruptibleRows;
  open({.slots = 3, .promptRows = 2 * rows, .promptsShareCalls = true});
  Recorder text, other, last;
  submit(withLimitedGaps(request({1, 2}, 9)), text);
  scheduler->step();
  size_t before = text.tokens.size();
  submit(request(Tokens(rows - 2, 5), 3), other);
  submit(request({4, 3, 2, 1}, 3), last);
  fakeCalls.clear();
  fakeDelay = longer;
  scheduler->step();
  fakeDelay = {};
  ASSERT_GE(fakeCalls.size(), 3u);
  EXPECT_EQ(fakeCalls[1].rows.size(), rows) << "two of them of the third request";
  std::vector<Row> decoded = fakeCalls[0].rows;
  for (size_t i = 2; i < fakeCalls.size(); ++i)
    decoded.insert(decoded.end(), fakeCalls[i].rows.begin(), fakeCalls[i].rows.end());
  ASSERT_EQ(text.tokens.size() - before, decoded.size());
  for (size_t i = 0; i < decoded.size(); ++i)
    EXPECT_EQ(decoded[i],
              (Row{text.tokens[before + i - 1], 0, static_cast<int32_t>(2 + before + i - 1)}));
  finishAll();
  EXPECT_EQ(text.tokens, fakeContinuation({1, 2}, 9));
  EXPECT_EQ(other.tokens, fakeContinuation(Tokens(rows - 2, 5), 3));
  EXPECT_EQ(last.tokens, fakeContinuation({4, 3, 2, 1}, 3));
}

TEST_F(LongContextTest, ARequestWhosePromptIsInterruptedIsCanceledAfterTheCall) {
  open({.slots = 2, .promptRows = 128});
  Recorder text, gone;
  submit(withLimitedGaps(request({1, 2}, 20)), text);
  scheduler->step();
  RequestId id = submit(request(Tokens(100, 5), 9), gone);
  gone.onFinish = [&] {
    EXPECT_EQ(scheduler->cachedTokens(1), PromptBudget::minInterruptibleRows);
  };
  // The step's first token is decoded before the call.
  text.onToken = [&, first = true](int32_t, auto) mutable {
    if (!std::exchange(first, false))
      scheduler->cancel(id);
    return Result<bool>(true);
  };
  fakeDelay = longer;
  scheduler->step();
  fakeDelay = {};
  EXPECT_GT(scheduler->totals().interruptions, 0);
  EXPECT_FALSE(gone.result);
  scheduler->step();
  ASSERT_TRUE(gone.result);
  EXPECT_EQ(gone.result->finish, Finish::Canceled);
  text.onToken = nullptr;
  finishAll();
  EXPECT_EQ(text.tokens, fakeContinuation({1, 2}, 20));
}

// The code of a model cannot be left by an exception.
TEST_F(LongContextTest, AnExceptionInAnInterruptionIsThrownAfterTheCall) {
  open({.slots = 2, .promptRows = 128});
  Recorder text, other;
  submit(withLimitedGaps(request({1, 2}, 20)), text);
  scheduler->step();
  submit(request(Tokens(100, 5), 9), other);
  text.onToken = [&, first = true](int32_t, auto) mutable -> Result<bool> {
    if (!std::exchange(first, false))
      throw std::bad_alloc();
    return true;
  };
  fakeDelay = longer;
  EXPECT_THROW(scheduler->step(), std::bad_alloc);
  fakeDelay = {};
  // The model can be used by another scheduler.
  scheduler.reset();
  EXPECT_EQ(alone(request({1, 2}, 20), 8).tokens, fakeContinuation({1, 2}, 20));
}

TEST_F(LongContextTest, WaitingRequestsDoNotDelayDecoding) {
  open({.slots = 2, .promptRows = 64, .promptsShareCalls = true});
  std::deque<Recorder> recorders(102);
  submit(withLimitedGaps(request({1, 2}, 200)), recorders[0]);
  submit(request(Tokens(900, 5), 1), recorders[1]);
  for (size_t i = 2; i < recorders.size(); ++i)
    submit(request({4, 3}, 1), recorders[i]);
  fakeDelay = fakeDecodeDelay = std::chrono::milliseconds(2);
  fakeCalls.clear();
  for (int step = 0; step < 12; ++step)
    scheduler->step();
  fakeDelay = fakeDecodeDelay = {};
  auto numPrompts = std::ranges::count(fakeCalls, RowRole::Prompt, &FakeCall::role);
  auto numDecodes = static_cast<int64_t>(fakeCalls.size()) - numPrompts;
  ASSERT_GT(numPrompts, 6);
  // When a call for the long prompt has its first kernel, its time is up.
  EXPECT_GT(2 * numDecodes, 3 * numPrompts);
}

/// Each row takes 6 MiB of scratch memory: a call has at most six rows.
class LargeRowsSchedulerTest : public SchedulerFixture {
  std::string manifest() const override { return withBytesPerRow(fakeManifest(), 6u << 20); }
};

TEST_F(LargeRowsSchedulerTest, PromptsJoinUpToTheMemoryLimit) {
  open({.slots = 7, .promptRows = 32, .promptsShareCalls = true, .promptsJoinDecode = true});
  std::deque<Recorder> texts(5);
  for (int32_t s = 0; s < 5; ++s)
    submit(request({s, 5}, 12), texts[static_cast<size_t>(s)]);
  while (texts.back().tokens.empty())
    scheduler->step();
  Recorder joined, separate;
  submit(request({9, 8, 7}, 9), joined);
  fakeCalls.clear();
  while (joined.tokens.empty())
    scheduler->step();
  EXPECT_THAT(calls(), ElementsAre(testing::SizeIs(6), testing::SizeIs(6), testing::SizeIs(6)));
  submit(request({4, 3}, 2), separate);
  fakeCalls.clear();
  scheduler->step();
  EXPECT_THAT(calls(), ElementsAre(testing::SizeIs(6), testing::SizeIs(2)));
  finishAll();
  for (int32_t s = 0; s < 5; ++s)
    EXPECT_EQ(texts[static_cast<size_t>(s)].tokens, fakeContinuation({s, 5}, 12)) << s;
  EXPECT_EQ(joined.tokens, fakeContinuation({9, 8, 7}, 9));
  EXPECT_EQ(separate.tokens, fakeContinuation({4, 3}, 2));
}

TEST_F(SchedulerTest, APromptThatJoinsIsCanceled) {
  open({.slots = 3, .promptRows = 10, .promptsShareCalls = true, .promptsJoinDecode = true});
  Recorder text, gone, next;
  submit(request({1, 5}, 6), text);
  scheduler->step();
  bool wanted = true;
  gone.onPoll = [&] { return wanted; };
  submit(request(Tokens(15, 7), 2), gone);
  scheduler->step();
  submit(request({4, 3}, 2), next);
  wanted = false;
  int32_t newest = text.tokens.back();
  fakeCalls.clear();
  scheduler->step();
  EXPECT_THAT(calls(), ElementsAre(ElementsAre(Row{newest, 0, 3}, Row{4, 2, 0}, Row{3, 2, 1})));
  ASSERT_TRUE(gone.result);
  EXPECT_EQ(gone.result->finish, Finish::Canceled);
  finishAll();
  EXPECT_EQ(text.tokens, fakeContinuation({1, 5}, 6));
  EXPECT_EQ(next.tokens, fakeContinuation({4, 3}, 2));
}

/// A model that needs more memory than available.
class NoMemoryTest : public SchedulerFixture {
  std::string manifest() const override { return withBytesPerRow(fakeManifest(), 1ull << 50); }
};

TEST_F(NoMemoryTest, AFailedCallFailsItsRequests) {
  open({.slots = 2, .promptsShareCalls = true});
  std::deque<Recorder> recorders(3);
  for (Recorder &recorder : recorders)
    submit(request({1, 2}, 2), recorder);
  finishAll();
  for (Recorder &recorder : recorders) {
    ASSERT_TRUE(recorder.result);
    EXPECT_EQ(recorder.result->finish, Finish::Failed);
    EXPECT_THAT(recorder.result->error.message, HasSubstr("memory"));
  }
  EXPECT_EQ(scheduler->cachedTokens(0), 0);
  EXPECT_TRUE(fakeCalls.empty());
}
} // namespace
