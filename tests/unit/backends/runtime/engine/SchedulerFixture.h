// Requests of a scheduler over a loaded fake model.
#ifndef MICA_TESTS_UNIT_BACKENDS_RUNTIME_ENGINE_SCHEDULERFIXTURE_H
#define MICA_TESTS_UNIT_BACKENDS_RUNTIME_ENGINE_SCHEDULERFIXTURE_H

#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/Generation.h"

#include "backends/runtime/engine/Scheduler.h"

#include <functional>

namespace mica::test {

/// Records the events of a request.
struct Recorder : rt::RequestListener {
  rt::Status sampled(int32_t token, std::span<const float> logits) override {
    EXPECT_EQ(numSampled, tokens.size()) << "sampled twice";
    ++numSampled;
    lastSampled = token;
    return onSampled ? onSampled(token, logits) : rt::Status();
  }
  rt::Result<bool> token(int32_t token, std::span<const float> logits) override {
    EXPECT_FALSE(result) << "a token after the end";
    if (numSampled > 0) {
      EXPECT_EQ(lastSampled, token);
    }
    tokens.push_back(token);
    return onToken ? onToken(token, logits) : rt::Result<bool>(true);
  }
  bool shouldContinue() override { return !onPoll || onPoll(); }
  void finished(const rt::RequestResult &finished) override {
    EXPECT_FALSE(result) << "two ends";
    result = finished;
    if (onFinish)
      onFinish();
  }

  rt::Tokens tokens;
  size_t numSampled = 0; ///< 0 for forced tokens
  int32_t lastSampled = 0;
  std::optional<rt::RequestResult> result;
  std::function<rt::Status(int32_t, std::span<const float>)> onSampled;
  std::function<rt::Result<bool>(int32_t, std::span<const float>)> onToken;
  std::function<bool()> onPoll;
  std::function<void()> onFinish;
};

class SchedulerFixture : public FakeModelFixture {
protected:
  using Row = FakeCall::Row;
  using RequestId = rt::Scheduler::RequestId;

  void open(const rt::Scheduler::Options &options) {
    auto created = rt::Scheduler::create(*model, options);
    ASSERT_TRUE(created) << created.error().message;
    scheduler = *std::move(created);
  }

  /// A greedy text without end tokens.
  static rt::Request request(const rt::Tokens &prompt, int64_t maxTokens) {
    Generation generation;
    generation.settings.maxTokens = maxTokens;
    return generation.requests({prompt})[0];
  }

  RequestId submit(const rt::Request &request, rt::RequestListener &listener) {
    auto id = scheduler->submit(request, listener);
    EXPECT_TRUE(id) << id.error().message;
    return id ? *id : 0;
  }
  static void finishAll(rt::Scheduler &scheduler) {
    for (int steps = 0; scheduler.step(); ++steps)
      ASSERT_LT(steps, 10000) << "there is no end";
  }
  void finishAll() { finishAll(*scheduler); }

  /// A step that decodes one text and can compute a prompt of three tokens, in calls of at most
  /// `promptRows` rows. Afterwards `calls()` has its calls, and there is no scheduler.
  void stepWithAPrompt(int64_t promptRows) {
    open({.slots = 2,
          .promptRows = promptRows,
          .promptsShareCalls = true,
          .promptsJoinDecode = true});
    Recorder text, other;
    submit(request({1, 5}, 4), text);
    scheduler->step();
    submit(request({9, 8, 7}, 2), other);
    fakeCalls.clear();
    scheduler->step();
    scheduler.reset();
  }

  /// The tokens of a request that runs alone.
  rt::RequestResult alone(const rt::Request &request, int64_t promptRows) {
    auto single = rt::Scheduler::create(*model, {.slots = 1, .promptRows = promptRows});
    Recorder recorder;
    EXPECT_TRUE((*single)->submit(request, recorder));
    finishAll(**single);
    EXPECT_TRUE(recorder.result);
    return recorder.result.value_or(rt::RequestResult());
  }

  /// Generates a text that may reuse `maxReused` positions. Returns the number of reused ones.
  int64_t reused(const rt::Tokens &prompt, int64_t maxReused, int64_t maxTokens = 2) {
    rt::Request next = request(prompt, maxTokens);
    next.maxReused = maxReused;
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

  std::unique_ptr<rt::Scheduler> scheduler;
};

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_RUNTIME_ENGINE_SCHEDULERFIXTURE_H
