#include "backends/runtime/engine/Scheduler.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/Generation.h"

#include <deque>
#include <functional>
#include <gmock/gmock.h>
#include <random>
#include <set>
#include <thread>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;
using testing::ElementsAre;
using testing::HasSubstr;

using Row = FakeCall::Row;
using RequestId = Scheduler::RequestId;

namespace {
/// Keeps what a request says.
struct Recorder : RequestListener {
  Result<bool> token(int32_t token, std::span<const float> logits) override {
    EXPECT_FALSE(result) << "a token after the end";
    tokens.push_back(token);
    return onToken ? onToken(token, logits) : Result<bool>(true);
  }
  bool shouldContinue() override { return !onPoll || onPoll(); }
  void finished(const RequestResult &finished) override {
    EXPECT_FALSE(result) << "two ends";
    result = finished;
    if (onFinish)
      onFinish();
  }

  Tokens tokens;
  std::optional<RequestResult> result;
  std::function<Result<bool>(int32_t, std::span<const float>)> onToken;
  std::function<bool()> onPoll;
  std::function<void()> onFinish;
};

class SchedulerTest : public FakeModelFixture {
protected:
  void open(const Scheduler::Options &options) {
    auto created = Scheduler::create(*model, options);
    ASSERT_TRUE(created) << created.error().message;
    scheduler = *std::move(created);
  }

  /// A greedy text without end tokens.
  static Request request(const Tokens &prompt, int64_t maxTokens) {
    Generation generation;
    generation.settings.maxTokens = maxTokens;
    return generation.requests({prompt})[0];
  }

  RequestId submit(const Request &request, RequestListener &listener) {
    auto id = scheduler->submit(request, listener);
    EXPECT_TRUE(id) << id.error().message;
    return id ? *id : 0;
  }
  void finishAll() {
    for (int steps = 0; scheduler->step(); ++steps)
      ASSERT_LT(steps, 10000) << "there is no end";
  }

  /// What a request makes of itself where no other is.
  RequestResult alone(const Request &request, int64_t promptRows) {
    auto single = Scheduler::create(*model, {.slots = 1, .promptRows = promptRows});
    Recorder recorder;
    EXPECT_TRUE((*single)->submit(request, recorder));
    while ((*single)->step()) {
    }
    return recorder.result.value_or(RequestResult());
  }

  /// Generates a text that may reuse `most` positions. How many it has reused.
  int64_t reused(const Tokens &prompt, int64_t most, int64_t maxTokens = 2) {
    Request next = request(prompt, maxTokens);
    next.maxReused = most;
    Recorder recorder;
    submit(next, recorder);
    finishAll();
    EXPECT_EQ(recorder.tokens, fakeContinuation(prompt, maxTokens));
    EXPECT_EQ(recorder.result->promptTokens, static_cast<int64_t>(prompt.size()));
    return recorder.result->reusedTokens;
  }

  static std::vector<std::vector<Row>> calls() {
    std::vector<std::vector<Row>> all;
    all.reserve(fakeCalls.size());
    for (const FakeCall &call : fakeCalls)
      all.push_back(call.rows);
    return all;
  }

  std::unique_ptr<Scheduler> scheduler;
};

/// Models whose arithmetic a neighbour could disturb in different ways.
class CompanyTest : public SchedulerTest, public testing::WithParamInterface<int> {
protected:
  std::string manifest() const override {
    std::string text = GetParam() & 1 ? fakeManifestOfLengths() : fakeManifest();
    return GetParam() & 2 ? dependingOnRole(text) : text;
  }

  Request randomRequest(std::mt19937 &random) const {
    Request request;
    request.prompt.resize(1 + random() % 12);
    bool repeats = random() % 2;
    for (size_t i = 0; i < request.prompt.size(); ++i)
      request.prompt[i] = static_cast<int32_t>(repeats ? 3 + i % 3 : random() % 31);
    GenerationSettings &settings = request.settings;
    settings.temperature = random() % 2 ? 0 : 2;
    settings.topK = 0;
    settings.topP = 1;
    settings.seed = random() % 100;
    settings.maxTokens = static_cast<int64_t>(random() % 12);
    settings.lookup = static_cast<int64_t>(random() % 6);
    settings.ignoreEos = random() % 2;
    request.stream = random() % 3;
    if (random() % 4 == 0)
      request.forcedTokens = {3, 4, 5, static_cast<int32_t>(random() % 31)};
    return request;
  }
};

/// Requests arrive and are cancelled at any time; whatever becomes of one, the others' tokens are
/// those that they have alone.
TEST_P(CompanyTest, NeverChangesTokens) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::set<Finish> seen;
  int64_t accepted = 0, rejected = 0;
  for (int round = 0; round < 150; ++round) {
    Scheduler::Options options{.slots = 1 + static_cast<int64_t>(random() % 4),
                               .promptRows = 1 + static_cast<int64_t>(random() % 7),
                               .promptsShareCalls = random() % 2 == 0,
                               .promptsFirst = random() % 2 == 0};
    open(options);
    struct Sent {
      Request request;
      Recorder recorder;
      RequestId id;
    };
    std::deque<Sent> sent;
    size_t count = 1 + random() % 9;
    do {
      if (sent.size() < count && random() % 3 > 0) {
        Sent &next = sent.emplace_back(randomRequest(random));
        if (random() % 8 == 0)
          next.recorder.onToken = [left = random() % 4](int32_t, auto) mutable -> Result<bool> {
            return left-- > 0 ? Result<bool>(true) : Error{"enough"};
          };
        next.id = submit(next.request, next.recorder);
      }
      if (!sent.empty() && random() % 10 == 0)
        scheduler->cancel(sent[random() % sent.size()].id);
    } while (scheduler->step() || sent.size() < count);
    Scheduler::Totals totals = scheduler->totals();
    accepted += totals.accepted;
    rejected += totals.drafted - totals.accepted;
    for (Sent &each : sent) {
      ASSERT_TRUE(each.recorder.result);
      const RequestResult &result = *each.recorder.result;
      seen.insert(result.finish);
      EXPECT_EQ(result.tokens, each.recorder.tokens);
      RequestResult expected = alone(each.request, options.promptRows);
      bool cut = result.finish == Finish::Cancelled ||
                 (result.finish == Finish::Failed && result.error.message == "enough");
      if (cut)
        expected.tokens.resize(std::min(expected.tokens.size(), result.tokens.size()));
      else
        EXPECT_EQ(result.finish, expected.finish) << result.error.message;
      EXPECT_EQ(result.tokens, expected.tokens) << "round " << round;
    }
  }
  // It has been put to the test.
  EXPECT_THAT(seen, testing::IsSupersetOf({Finish::Length, Finish::EndToken, Finish::ContextFull,
                                           Finish::Cancelled, Finish::Failed}));
  EXPECT_GT(accepted, 50);
  EXPECT_GT(rejected, 50);
}

INSTANTIATE_TEST_SUITE_P(Models, CompanyTest, testing::Range(0, 4), [](const auto &info) {
  return std::string(info.param & 1 ? "Lengths" : "NoLengths") +
         (info.param & 2 ? "AndRoles" : "AndNoRoles");
});

TEST_F(SchedulerTest, TextsGoOnWhileALongPromptIsComputed) {
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
  // Each role has calls of its own, decoding before prompts.
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
  // Two texts; the third prompt, behind which there is no room for five rows.
  EXPECT_THAT(calls(), ElementsAre(testing::SizeIs(2), testing::SizeIs(1)));
  finishAll();
  EXPECT_EQ(recorders[3].tokens, fakeContinuation({7, 8, 9, 1, 2, 3}, 2));
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

TEST_F(SchedulerTest, WhatASlotHasCachedIsNotComputedAgain) {
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

TEST_F(SchedulerTest, OnlyWhatIsTheSameIsReused) {
  open({.slots = 1});
  EXPECT_EQ(reused({1, 5, 3, 8}, 100), 0);
  EXPECT_EQ(reused({1, 5, 4, 8}, 100), 2);
  EXPECT_EQ(reused({1, 5, 4, 8}, 100), 3) << "the last row has the logits";
  EXPECT_EQ(reused({1, 5, 4, 8}, 1), 1);
  EXPECT_EQ(reused({1, 5, 4, 8}, 0), 0);
  EXPECT_EQ(reused({1, 5}, 100, 0), 1);
  EXPECT_EQ(reused({1, 5, 4}, 100), 2) << "and no more, though the slot has had more";
}

TEST_F(SchedulerTest, TheSlotThatHasMostOfAPromptIsTaken) {
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
  // What reuses nothing takes the slot with least to reuse.
  submit(request({9}, 1), recorders[4]);
  finishAll();
  EXPECT_THAT(calls()[1], ElementsAre(Row{9, 2, 0}));
}

TEST_F(SchedulerTest, AFailureLeavesNothingToReuse) {
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

/// Three texts of one call, of which the middle one fails.
TEST_F(SchedulerTest, AnErrorOfAListenerFailsItsTextAlone) {
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

TEST_F(SchedulerTest, APoisonousPromptFailsAlone) {
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

TEST_F(SchedulerTest, AWaitingRequestIsCancelledWithoutASlot) {
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
  EXPECT_EQ(second.result->finish, Finish::Cancelled);
  finishAll();
  EXPECT_EQ(first.tokens, fakeContinuation({1}, 3));
  EXPECT_EQ(third.tokens, fakeContinuation({3}, 3));
  // What has ended stays as it is.
  scheduler->cancel(id);
  EXPECT_FALSE(scheduler->step());
}

TEST_F(SchedulerTest, ACancelledPromptKeepsWhatIsComputed) {
  open({.slots = 1, .promptRows = 2});
  Recorder first;
  Tokens prompt = {1, 2, 3, 4, 5, 6};
  RequestId id = submit(request(prompt, 3), first);
  scheduler->step();
  scheduler->step();
  scheduler->cancel(id);
  EXPECT_FALSE(scheduler->step());
  EXPECT_EQ(first.result->finish, Finish::Cancelled);
  EXPECT_EQ(scheduler->cachedTokens(0), 4);
  EXPECT_EQ(reused(prompt, 6), 4);
}

TEST_F(SchedulerTest, AListenerMayCancelAndSubmit) {
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
  EXPECT_EQ(second.result->finish, Finish::Cancelled);
  EXPECT_LT(second.tokens.size(), 4u);
  EXPECT_EQ(first.tokens, fakeContinuation({1}, 3));
  EXPECT_EQ(third.tokens, fakeContinuation({7}, 2));
}

TEST_F(SchedulerTest, AListenerMayEndItsText) {
  open({.slots = 1});
  Recorder stopping;
  stopping.onToken = [&](int32_t, auto) { return stopping.tokens.size() < 3; };
  // It comes before the length.
  submit(request({1, 5}, 3), stopping);
  finishAll();
  EXPECT_EQ(stopping.result->finish, Finish::StopText);
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

TEST_F(SchedulerTest, TokensComeWithTheLogitsOfTheModel) {
  open({.slots = 1});
  Recorder recorder;
  Tokens tops;
  recorder.onToken = [&](int32_t, std::span<const float> logits) {
    tops.push_back(*argmax(logits));
    return true;
  };
  // Biases and penalties do not show in them.
  Request biased = request({1, 5}, 3);
  biased.settings.logitBias = {{9, 100}};
  submit(biased, recorder);
  finishAll();
  EXPECT_THAT(recorder.tokens, ElementsAre(9, 9, 9));
  EXPECT_THAT(tops, ElementsAre(fakeNext({1, 5}), fakeNext({1, 5, 9}), fakeNext({1, 5, 9, 9})));
}

TEST_F(SchedulerTest, DraftsOfOneTextStandBesideOthers) {
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

TEST_F(SchedulerTest, WhatCannotBeGeneratedIsRefusedAtOnce) {
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
  // Behind what the slot has cached as well.
  fakeCalls.clear();
  Recorder behind;
  forced.prompt = {5, 6};
  forced.maxReused = 2;
  submit(forced, behind);
  finishAll();
  EXPECT_EQ(behind.result->reusedTokens, 2);
  EXPECT_THAT(calls()[0], ElementsAre(Row{5, 0, 2}));
}

TEST_F(SchedulerTest, ASeedThatIsDrawnIsTold) {
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
      auto id = scheduler->submit(request({i % 20, 5}, 5), recorders[i]);
      if (i % 3 == 0)
        scheduler->cancel(*id);
    }
  };
  std::thread one(send, 0), two(send, count);
  auto left = [&] {
    return std::any_of(recorders.begin(), recorders.end(),
                       [](const Recorder &recorder) { return !recorder.result; });
  };
  while (left())
    scheduler->step();
  one.join();
  two.join();
  for (int32_t i = 0; i < 2 * count; ++i) {
    Tokens all = fakeContinuation({i % 20, 5}, 5);
    EXPECT_TRUE(i % 3 == 0 || recorders[i].result->finish != Finish::Cancelled);
    // The model says the poisonous token to some.
    size_t size = recorders[i].tokens.size();
    EXPECT_EQ(recorders[i].tokens, Tokens(all.begin(), all.begin() + size));
    if (recorders[i].result->finish == Finish::Length)
      EXPECT_EQ(size, 5u);
  }
}

/// A model that needs more memory than there is.
class NoMemoryTest : public SchedulerTest {
  std::string manifest() const override { return withBytesPerRow(fakeManifest(), 1ull << 50); }
};

TEST_F(NoMemoryTest, ACallThatIsNotMadeFailsItsRequests) {
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

/// A model whose rows follow the length of their text: beyond eight positions all are recomputed.
class RecomputeTest : public SchedulerTest {
protected:
  std::string manifest() const override { return fakeManifestOfLengths(); }

  const Tokens text = {5, 3, 9, 1, 4, 4, 7, 2, 6, 8};
  Tokens begin(size_t count) const { return {text.begin(), text.begin() + count}; }
};

TEST_F(RecomputeTest, IsNoPartOfDecodingTime) {
  open({.slots = 1, .promptRows = 2});
  // Calls without logits: two of the prompt's three, four that recompute.
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
  EXPECT_EQ(ending.result->finish, Finish::Cancelled);
  Scheduler::Totals totals = scheduler->totals();
  EXPECT_EQ(totals.decodeTokens, 2) << "computed, though forgotten since";
  EXPECT_EQ(totals.promptTokens, 6);
  EXPECT_EQ(totals.recomputedTokens, 3);
  ASSERT_EQ(scheduler->cachedTokens(0), 3);
  // The conversation goes on with what the slot has cached.
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
  EXPECT_EQ(ending.result->finish, Finish::Cancelled);
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
  EXPECT_EQ(recorder.result->finish, Finish::Cancelled);
  EXPECT_EQ(recorder.tokens, fakeContinuation(begin(6), 3));
  EXPECT_EQ(scheduler->totals().recomputedTokens, 3);
  EXPECT_EQ(scheduler->cachedTokens(0), 3);
}

/// The rows of others that were queued beside it are computed all the same, as parts of a text as
/// long as theirs.
TEST_F(RecomputeTest, ThatIsCancelledLeavesTheOthersOfItsCall) {
  open({.slots = 2, .promptRows = 10, .promptsShareCalls = true});
  Recorder first, refusing, other;
  submit(request(begin(6), 1), first);
  finishAll();
  fakeCalls.clear();
  Request longer = request(text, 3);
  longer.maxReused = 6;
  Tokens prompt = {7, 7, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5};
  // Asked again when its rows are queued already.
  refusing.onPoll = [asked = 0]() mutable { return ++asked < 2; };
  submit(longer, refusing);
  submit(request(prompt, 3), other);
  scheduler->step();
  ASSERT_TRUE(refusing.result);
  EXPECT_EQ(refusing.result->finish, Finish::Cancelled);
  ASSERT_EQ(fakeCalls.size(), 1u);
  EXPECT_EQ(fakeCalls[0].rows.size(), 6u) << "what had room beside the four";
  finishAll();
  EXPECT_EQ(other.tokens, fakeContinuation(prompt, 3));
  EXPECT_EQ(scheduler->totals().recomputedTokens, 0);
}
} // namespace
