#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <array>
#include <limits>
#include <list>
#include <set>
#include <utility>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

namespace {
class SchedulerSharingTest : public SchedulerFixture {
protected:
  using Recorders = std::list<Recorder>;

  /// Submits the request once per recorder, with the streams 0, 1 and so on. Returns the ids.
  std::vector<RequestId> submitCompletions(const std::shared_ptr<const Request> &common,
                                           const std::shared_ptr<const Tokens> &prompt,
                                           Recorders &recorders) {
    std::vector<RequestId> ids;
    for (Recorder &recorder : recorders)
      ids.push_back(scheduler->submit(SharedRequest{common, prompt, ids.size()}, recorder));
    return ids;
  }
  std::vector<RequestId> submitCompletions(const Request &request, Recorders &recorders) {
    return submitCompletions(std::make_shared<const Request>(request),
                             std::make_shared<const Tokens>(request.prompt), recorders);
  }
};

TEST_F(SchedulerSharingTest, SharedRequestsHaveTheTextsOfSeparateOnes) {
  open({.slots = 2, .promptRows = 4});
  Request random = request({1, 5}, 6);
  random.settings.temperature = 5;
  random.settings.topP = 1;
  random.settings.topK = 0;
  random.settings.seed = 3;
  random.settings.logitBias = {{fakePoison, -std::numeric_limits<float>::infinity()}};
  auto common = std::make_shared<const Request>(random);
  auto prompt = std::make_shared<const Tokens>(random.prompt);
  Recorders recorders(4);
  submitCompletions(common, prompt, recorders);
  EXPECT_EQ(prompt.use_count(), 1 + 4);
  EXPECT_EQ(common.use_count(), 1 + 4);
  finishAll();
  EXPECT_EQ(prompt.use_count() + common.use_count(), 2);
  std::set<Tokens> texts;
  for (const Recorder &recorder : recorders) {
    RequestResult expected = alone(random, 4);
    EXPECT_EQ(recorder.tokens, expected.tokens);
    EXPECT_EQ(recorder.result->seed, 3u);
    EXPECT_EQ(recorder.result->promptTokens, 2);
    texts.insert(recorder.tokens);
    ++random.stream;
  }
  EXPECT_GT(texts.size(), 1u);
}

class CopyFixture : public SchedulerSharingTest {
protected:
  static Tokens longPrompt(int32_t last) {
    Tokens prompt;
    for (int32_t i = 0; i < 49; ++i)
      prompt.push_back(3 + i % 5);
    prompt.push_back(last);
    return prompt;
  }
  static Request reusing(const Tokens &prompt, int64_t maxTokens) {
    Request next = request(prompt, maxTokens);
    next.maxReused = 1000;
    return next;
  }
  /// Submits requests for three tokens whose prompts differ in the last token.
  void submitWithLast(std::initializer_list<int32_t> lastTokens, Recorders &recorders) {
    for (int32_t last : lastTokens)
      submit(reusing(longPrompt(last), 3), recorders.emplace_back());
  }
  void expectTextsWithLast(std::initializer_list<int32_t> lastTokens, const Recorders &recorders) {
    ASSERT_EQ(recorders.size(), lastTokens.size());
    auto recorder = recorders.begin();
    for (int32_t last : lastTokens)
      expectText(*recorder++, reusing(longPrompt(last), 3));
  }
  /// The text of the request alone, without a cache.
  void expectText(const Recorder &recorder, const Request &request) {
    ASSERT_TRUE(recorder.result);
    EXPECT_EQ(recorder.tokens, alone(request, 16).tokens);
  }
};

/// Models whose positions are copied in different ways.
class CopiedPromptTest : public CopyFixture, public testing::WithParamInterface<int> {
protected:
  std::string manifest() const override {
    switch (GetParam()) {
    case 1:
      return fakeManifestOfWindows();
    case 2:
      return dependingOnRole(fakeManifest("", fakeVocab, 60));
    case 3:
      return fakeManifestOfStates();
    case 4:
      return fakeManifestOfLengths(60);
    default:
      return fakeManifest("", fakeVocab, 60);
    }
  }
};

TEST_P(CopiedPromptTest, CompletionsOfAPromptComputeItOnce) {
  for (bool together : {false, true}) {
    open({.slots = 3,
          .promptRows = 16,
          .promptsShareCalls = together,
          .promptsJoinDecode = together});
    const Request one = reusing(longPrompt(8), 5);
    Recorders recorders(3);
    submitCompletions(one, recorders);
    finishAll();
    EXPECT_EQ(scheduler->totals().promptTokens, 50 + 2);
    EXPECT_EQ(scheduler->totals().copiedTokens, 2 * 49);
    EXPECT_EQ(scheduler->totals().recomputedTokens, 0);
    int64_t copied = 0;
    for (const Recorder &recorder : recorders) {
      expectText(recorder, one);
      EXPECT_EQ(recorder.result->reusedTokens, std::exchange(copied, 49));
    }
  }
}

TEST_P(CopiedPromptTest, OthersComputeThePromptOfACanceledCompletion) {
  open({.slots = 2, .promptRows = 16});
  const Request one = reusing(longPrompt(8), 5);
  Recorders recorders(2);
  RequestId first = submitCompletions(one, recorders).front();
  scheduler->step();
  scheduler->step();
  scheduler->cancel(first);
  finishAll();
  EXPECT_EQ(recorders.front().result->finish, Finish::Canceled);
  expectText(recorders.back(), one);
  EXPECT_EQ(scheduler->totals().promptTokens, 50) << "what the first has computed is copied";
}

TEST_P(CopiedPromptTest, RequestsThatArriveTogetherComputeTheirCommonPrefixOnce) {
  for (bool together : {false, true}) {
    open({.slots = 3,
          .promptRows = 16,
          .promptsShareCalls = together,
          .promptsJoinDecode = together});
    Recorders recorders;
    submitWithLast({8, 9, 10}, recorders);
    finishAll();
    EXPECT_EQ(scheduler->totals().promptTokens, 50 + 2);
    EXPECT_EQ(scheduler->totals().copiedTokens, 2 * 49);
    expectTextsWithLast({8, 9, 10}, recorders);
  }
}

TEST_P(CopiedPromptTest, OneRequestReplacesACanceledSource) {
  open({.slots = 4, .promptRows = 16});
  Recorder gone;
  Recorders recorders;
  RequestId id = submit(reusing(longPrompt(8), 3), gone);
  submitWithLast({9, 10, 11}, recorders);
  scheduler->step();
  scheduler->cancel(id);
  finishAll();
  EXPECT_EQ(scheduler->totals().promptTokens, 16 + 50 + 2) << "16 positions are not worth a copy";
  expectTextsWithLast({9, 10, 11}, recorders);
}

TEST_P(CopiedPromptTest, APrefixIsCopiedAsSoonAsItIsComputed) {
  open({.slots = 2, .promptRows = 8});
  Recorder longer, shorter;
  const Request first = reusing(longPrompt(8), 3);
  Request second = first;
  second.prompt.resize(40);
  submit(first, longer);
  submit(second, shorter);
  while (scheduler->totals().copiedTokens == 0)
    ASSERT_TRUE(scheduler->step());
  EXPECT_EQ(scheduler->totals().copiedTokens, 39);
  EXPECT_TRUE(longer.tokens.empty()) << "its prompt has further rows";
  finishAll();
  expectText(longer, first);
  expectText(shorter, second);
}

TEST_P(CopiedPromptTest, OneCopyInAStepThatStreamsWaitFor) {
  open({.slots = 4, .promptRows = 64, .promptsShareCalls = true, .promptsJoinDecode = true});
  Recorders recorders;
  Recorder stream, previous;
  Request streamed = request({1, 5}, 30);
  streamed.limitGaps = true;
  submit(streamed, stream);
  submit(reusing(longPrompt(8), 1), previous);
  while (!previous.result)
    scheduler->step();
  ASSERT_FALSE(stream.result);
  // The first of them continues in the slot that has the prefix.
  submitWithLast({9, 10, 11}, recorders);
  int64_t copied = 0;
  bool more = true;
  for (int steps = 0; more && steps < 100; ++steps) {
    more = scheduler->step();
    int64_t before = std::exchange(copied, scheduler->totals().copiedTokens);
    EXPECT_LE(copied - before, 49);
  }
  ASSERT_FALSE(more) << "there is no end";
  EXPECT_EQ(copied, 2 * 49);
  expectText(stream, streamed);
  expectText(previous, reusing(longPrompt(8), 1));
  expectTextsWithLast({9, 10, 11}, recorders);
}

TEST_P(CopiedPromptTest, WaitsForAPrefixWhoseCallIsInterrupted) {
  open({.slots = 3, .promptRows = 64, .promptsShareCalls = true});
  Recorder stream, first, second;
  Request streamed = request({1, 5}, 30);
  streamed.limitGaps = true;
  submit(streamed, stream);
  scheduler->step();
  const Request one = reusing(longPrompt(8), 3), other = reusing(longPrompt(9), 3);
  submit(one, first);
  submit(other, second);
  fakeDelay = std::chrono::milliseconds(30); // longer than decoding
  scheduler->step();
  fakeDelay = {};
  EXPECT_EQ(scheduler->totals().interruptions > 0, GetParam() != 3) << "states: has no kernels";
  EXPECT_EQ(scheduler->cachedTokens(1), PromptBudget::minInterruptibleRows);
  EXPECT_EQ(scheduler->cachedTokens(2), 0);
  finishAll();
  EXPECT_EQ(scheduler->totals().promptTokens, 2 + 50 + 1);
  EXPECT_EQ(scheduler->totals().copiedTokens, 49);
  expectText(stream, streamed);
  expectText(first, one);
  expectText(second, other);
}

TEST_P(CopiedPromptTest, ThePrefixOfAPromptInProgressIsCopied) {
  open({.slots = 2, .promptRows = 64});
  Recorder text, other, next;
  const Request first = reusing(longPrompt(8), 9), second = reusing(longPrompt(9), 3);
  submit(first, text);
  scheduler->step();
  scheduler->step();
  ASSERT_FALSE(text.result);
  submit(second, other);
  finishAll();
  EXPECT_EQ(other.result->reusedTokens, 49);
  expectText(text, first);
  expectText(other, second);
  // Nothing is copied that a request may not reuse.
  submit(request(longPrompt(10), 3), next);
  finishAll();
  EXPECT_EQ(next.result->reusedTokens, 0);
}

std::string nameOf(const testing::TestParamInfo<int> &info) {
  return std::array{"Plain", "Windows", "Roles", "States", "Lengths"}[info.param];
}
INSTANTIATE_TEST_SUITE_P(Models, CopiedPromptTest, testing::Range(0, 5), nameOf);

/// States can only be copied a few positions after the prefix.
class CopiedStatesTest : public CopyFixture {
protected:
  std::string manifest() const override { return fakeManifestOfStates(); }
  /// A prompt with a common prefix of 49 positions and a hundred others.
  static Tokens veryLongPrompt() {
    Tokens prompt = longPrompt(8);
    prompt.resize(150, 3);
    return prompt;
  }
};

TEST_F(CopiedStatesTest, NothingIsCopiedFromASequenceFarPastThePrefix) {
  open({.slots = 2, .promptRows = 16});
  Recorder ahead, other;
  const Request first = reusing(veryLongPrompt(), 3), second = reusing(longPrompt(9), 3);
  submit(first, ahead);
  finishAll();
  submit(second, other);
  finishAll();
  EXPECT_EQ(scheduler->totals().copiedTokens, 0);
  EXPECT_EQ(other.result->reusedTokens, 0);
  EXPECT_EQ(scheduler->totals().promptTokens, 150 + 50);
  expectText(ahead, first);
  expectText(other, second);
}

TEST_F(CopiedStatesTest, ACallEndsAtAPrefixThatAnotherRequestWaitsFor) {
  open({.slots = 2, .promptRows = 200});
  Recorder ahead, other;
  const Request first = reusing(veryLongPrompt(), 3), second = reusing(longPrompt(9), 3);
  submit(first, ahead);
  submit(second, other);
  finishAll();
  EXPECT_EQ(scheduler->totals().copiedTokens, 49);
  EXPECT_EQ(scheduler->totals().promptTokens, 150 + 1);
  expectText(ahead, first);
  expectText(other, second);
}
} // namespace
