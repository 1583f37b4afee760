#include "backends/runtime/serve/EngineThread.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/Generation.h"

#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <new>

using namespace mica;
using namespace mica::rt;
using namespace mica::rt::serve;
using namespace mica::test;

namespace {
/// Records the events of a request, on the engine's thread, and fails if it is told to.
struct Client : RequestListener {
  Status sampled(int32_t, std::span<const float>) override {
    if (failsInSampled)
      throw std::bad_alloc();
    return {};
  }
  Result<bool> token(int32_t token, std::span<const float>) override {
    if (failsInToken)
      throw std::bad_alloc();
    tokens.push_back(token);
    if (onToken)
      onToken();
    return true;
  }
  bool shouldContinue() override {
    if (failsInStep)
      throw std::bad_alloc();
    return true;
  }
  void started() override { ++starts; }
  void finished(const RequestResult &result) override {
    if (onEnd)
      onEnd();
    end.set_value(result);
    if (failsAtEnd)
      throw std::bad_alloc();
  }

  bool failsInSampled = false, failsInToken = false, failsInStep = false, failsAtEnd = false;
  int starts = 0;
  Tokens tokens;
  std::function<void()> onToken, onEnd;
  std::promise<RequestResult> end;
};

class EngineThreadTest : public FakeModelFixture {
protected:
  void SetUp() override {
    FakeModelFixture::SetUp();
    auto started = EngineThread::start(*model, {.slots = 2, .promptRows = 4}, 2);
    ASSERT_TRUE(started) << started.error().message;
    engine = *std::move(started);
  }

  /// Requests with the prompt {1, 5}.
  std::vector<Scheduler::RequestId> submit(const std::vector<std::shared_ptr<Client>> &clients) {
    Generation generation;
    generation.settings.maxTokens = 4;
    auto common = std::make_shared<const Request>(generation.requests({{}})[0]);
    std::vector<EngineThread::Submission> all;
    for (const auto &client : clients)
      all.emplace_back(SharedRequest{common, prompt}, client);
    auto ids = engine->submit(std::move(all));
    EXPECT_TRUE(ids);
    return ids.value_or(std::vector<Scheduler::RequestId>());
  }
  static RequestResult resultOf(Client &client) {
    std::future<RequestResult> end = client.end.get_future();
    EXPECT_EQ(end.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    return end.get();
  }
  /// A request is answered as if nothing had happened before.
  void expectWorks() {
    auto next = std::make_shared<Client>();
    submit({next});
    EXPECT_EQ(resultOf(*next).finish, Finish::Length);
    EXPECT_EQ(next->tokens, fakeContinuation({1, 5}, 4));
    while (engine->unfinished() > 0)
      std::this_thread::yield();
  }

  const std::shared_ptr<const Tokens> prompt = std::make_shared<const Tokens>(Tokens{1, 5});
  std::unique_ptr<EngineThread> engine;
};

TEST_F(EngineThreadTest, SubmissionsTakeTurns) {
  auto single = EngineThread::start(*model, {.slots = 1, .promptRows = 4}, 8);
  ASSERT_TRUE(single) << single.error().message;
  engine = *std::move(single);
  std::vector<size_t> order;
  std::vector<std::shared_ptr<Client>> many;
  for (size_t i = 0; i < 4; ++i) {
    many.push_back(std::make_shared<Client>());
    many[i]->onEnd = [&order, i] { order.push_back(i); };
  }
  // Submitted while the first of the others has the only slot.
  auto later = std::make_shared<Client>();
  later->onEnd = [&order] { order.push_back(4); };
  many[0]->onToken = [&] {
    if (many[0]->tokens.size() == 1)
      submit({later});
  };
  submit(many);
  for (const auto &client : many)
    EXPECT_EQ(resultOf(*client).finish, Finish::Length);
  EXPECT_THAT(order, testing::ElementsAre(0, 4, 1, 2, 3));
}

TEST_F(EngineThreadTest, AClientThatHasItsAnswerCanSubmitAgain) {
  auto single = EngineThread::start(*model, {.slots = 1, .promptRows = 4}, 0);
  ASSERT_TRUE(single) << single.error().message;
  engine = *std::move(single);
  auto first = std::make_shared<Client>(), second = std::make_shared<Client>();
  first->onEnd = [&] {
    EXPECT_EQ(engine->unfinished(), 0u);
    submit({second});
  };
  submit({first});
  EXPECT_EQ(resultOf(*first).finish, Finish::Length);
  EXPECT_EQ(resultOf(*second).tokens, fakeContinuation({1, 5}, 4));
}

/// A request that arrives during a step waits until the next one, although a slot is free.
TEST_F(EngineThreadTest, RequestsRunOnceTheyHaveASlot) {
  auto first = std::make_shared<Client>(), second = std::make_shared<Client>();
  using Load = std::pair<size_t, size_t>;
  auto load = [&] { return Load(engine->load().running, engine->load().waiting); };
  std::vector<Load> loads;
  first->onToken = [&] {
    if (first->tokens.size() == 1)
      submit({second});
    loads.push_back(load());
  };
  submit({first});
  EXPECT_EQ(resultOf(*first).finish, Finish::Length);
  EXPECT_EQ(resultOf(*second).finish, Finish::Length);
  EXPECT_EQ(load(), Load(0, 0));
  EXPECT_EQ(loads.front(), Load(1, 1));
  EXPECT_EQ(loads.back(), Load(2, 0));
}

TEST_F(EngineThreadTest, RequestsShareTheirPrompt) {
  auto first = std::make_shared<Client>(), second = std::make_shared<Client>();
  long uses = 0;
  first->onToken = [&] { uses = prompt.use_count(); };
  submit({first, second});
  EXPECT_EQ(resultOf(*first).promptTokens, 2);
  EXPECT_EQ(resultOf(*second).tokens, fakeContinuation({1, 5}, 4));
  EXPECT_EQ(uses, 3);
  // Nothing is kept after the end of the step.
  engine.reset();
  EXPECT_EQ(prompt.use_count(), 1);
}

TEST(WaitEstimate, GrowsWithTheQueue) {
  using std::chrono::seconds;
  WaitEstimate estimate;
  WaitEstimate::Clock::time_point begin;
  EXPECT_EQ(estimate.seconds(100, begin), 1);
  estimate.begin(begin);
  EXPECT_EQ(estimate.seconds(100, begin), 1);
  // Before the first end, the time so far is the least that each takes.
  EXPECT_EQ(estimate.seconds(4, begin + seconds(3)), 12);
  // Two at a time, each of which takes 4 s.
  for (int second = 4; second <= 12; second += 4) {
    estimate.end(begin + seconds(second));
    estimate.end(begin + seconds(second));
  }
  for (size_t waiting : {1, 5, 10, 29})
    EXPECT_EQ(estimate.seconds(waiting, begin + seconds(12)), static_cast<int64_t>(2 * waiting));
  EXPECT_EQ(estimate.seconds(0, begin + seconds(12)), 1);
  EXPECT_EQ(estimate.seconds(100, begin + seconds(12)), 60);
  // Only the latest count.
  for (int second = 13; second < 60; ++second)
    estimate.end(begin + seconds(second));
  EXPECT_EQ(estimate.seconds(10, begin + seconds(59)), 10);
  // An idle time does not.
  estimate.begin(begin + seconds(1000));
  estimate.end(begin + seconds(1003));
  EXPECT_EQ(estimate.seconds(2, begin + seconds(1003)), 6);
}

TEST_F(EngineThreadTest, OnlyRequestsWithASlotStart) {
  auto single = EngineThread::start(*model, {.slots = 1, .promptRows = 4}, 1);
  ASSERT_TRUE(single) << single.error().message;
  engine = *std::move(single);
  auto first = std::make_shared<Client>(), waiting = std::make_shared<Client>();
  std::vector<Scheduler::RequestId> ids;
  std::promise<void> submitted;
  std::future<void> ready = submitted.get_future();
  first->onToken = [&, waited = false]() mutable {
    if (!std::exchange(waited, true)) {
      ready.wait();
      engine->cancel(ids[1]);
    }
  };
  ids = submit({first, waiting});
  submitted.set_value();
  EXPECT_EQ(resultOf(*waiting).finish, Finish::Canceled);
  EXPECT_EQ(resultOf(*first).finish, Finish::Length);
  EXPECT_EQ(first->starts, 1);
  EXPECT_EQ(waiting->starts, 0);
}

TEST_F(EngineThreadTest, AnExceptionOfAListenerFailsItsRequest) {
  for (bool Client::*failsIn : {&Client::failsInSampled, &Client::failsInToken}) {
    auto failing = std::make_shared<Client>(), other = std::make_shared<Client>();
    (*failing).*failsIn = true;
    submit({failing, other});
    RequestResult result = resultOf(*failing);
    EXPECT_EQ(result.finish, Finish::Failed);
    EXPECT_EQ(result.error.message, "the server is out of memory");
    EXPECT_EQ(resultOf(*other).finish, Finish::Length);
    EXPECT_EQ(other->tokens, fakeContinuation({1, 5}, 4));
    expectWorks();
  }
}

TEST_F(EngineThreadTest, AnExceptionAtTheEndOfARequestIsWithoutConsequence) {
  auto failing = std::make_shared<Client>();
  failing->failsAtEnd = true;
  submit({failing});
  EXPECT_EQ(resultOf(*failing).finish, Finish::Length);
  expectWorks();
}

TEST_F(EngineThreadTest, AFailedStepEndsAllRequests) {
  auto failing = std::make_shared<Client>(), other = std::make_shared<Client>(),
       waiting = std::make_shared<Client>();
  failing->failsInStep = true;
  std::vector<Scheduler::RequestId> old = submit({other, failing, waiting});
  for (Client *client : {failing.get(), other.get(), waiting.get()}) {
    RequestResult result = resultOf(*client);
    EXPECT_EQ(result.finish, Finish::Failed);
    EXPECT_EQ(result.error.message, "the server is out of memory");
  }
  EXPECT_EQ(engine->unfinished(), 0u);
  // Ids are not reused: canceling an ended request has no effect on later ones.
  auto next = std::make_shared<Client>();
  std::vector<Scheduler::RequestId> ids = submit({next});
  for (Scheduler::RequestId id : old) {
    EXPECT_LT(id, ids[0]);
    engine->cancel(id);
  }
  EXPECT_EQ(resultOf(*next).finish, Finish::Length);
  expectWorks();
}
} // namespace
