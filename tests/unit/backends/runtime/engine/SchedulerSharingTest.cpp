#include "tests/unit/backends/runtime/engine/SchedulerFixture.h"

#include <limits>
#include <list>
#include <set>

using namespace mica;
using namespace mica::rt;
using namespace mica::test;

using SchedulerSharingTest = SchedulerFixture;

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
  std::list<Recorder> recorders;
  for (uint64_t stream = 0; stream < 4; ++stream)
    scheduler->submit(SharedRequest{common, prompt, stream}, recorders.emplace_back());
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
