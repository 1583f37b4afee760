#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <deque>
#include <gmock/gmock.h>
#include <random>
#include <set>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

namespace {
/// Models whose arithmetic a neighbor could disturb in different ways.
class ConcurrencyTest : public SchedulerFixture, public testing::WithParamInterface<int> {
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
    request.limitGaps = random() % 2 == 0;
    if (random() % 4 == 0)
      request.forcedTokens = {3, 4, 5, static_cast<int32_t>(random() % 31)};
    return request;
  }
};

/// Requests arrive and are canceled at any time; the tokens of the other requests must equal those
/// of requests that run alone.
TEST_P(ConcurrencyTest, ConcurrentRequestsChangeNoToken) {
  std::mt19937 random(static_cast<unsigned>(GetParam()));
  std::set<Finish> seen;
  int64_t accepted = 0, rejected = 0, joined = 0, interruptions = 0;
  for (int round = 0; round < 150; ++round) {
    Scheduler::Options options{.slots = 1 + static_cast<int64_t>(random() % 4),
                               .promptRows = 1 + static_cast<int64_t>(random() % 16),
                               .promptsShareCalls = random() % 2 == 0,
                               .promptsJoinDecode = random() % 2 == 0,
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
    joined += totals.joinedTokens;
    interruptions += totals.interruptions;
    for (Sent &each : sent) {
      ASSERT_TRUE(each.recorder.result);
      const RequestResult &result = *each.recorder.result;
      seen.insert(result.finish);
      EXPECT_EQ(result.tokens, each.recorder.tokens);
      RequestResult expected = alone(each.request, options.promptRows);
      bool cut = result.finish == Finish::Canceled ||
                 (result.finish == Finish::Failed && result.error.message == "enough");
      if (cut)
        expected.tokens.resize(std::min(expected.tokens.size(), result.tokens.size()));
      else
        EXPECT_EQ(result.finish, expected.finish) << result.error.message;
      EXPECT_EQ(result.tokens, expected.tokens) << "round " << round;
    }
  }
  // The test has an effect.
  EXPECT_THAT(seen, testing::IsSupersetOf({Finish::Length, Finish::EndToken, Finish::ContextFull,
                                           Finish::Canceled, Finish::Failed}));
  EXPECT_GT(accepted, 50);
  EXPECT_GT(rejected, 50);
  EXPECT_EQ(joined > 50, !model->manifest().dependsOnRole) << joined;
  EXPECT_GT(interruptions, 5);
}

INSTANTIATE_TEST_SUITE_P(Models, ConcurrencyTest, testing::Range(0, 4), [](const auto &info) {
  return std::string(info.param & 1 ? "Lengths" : "NoLengths") +
         (info.param & 2 ? "AndRoles" : "AndNoRoles");
});
} // namespace
