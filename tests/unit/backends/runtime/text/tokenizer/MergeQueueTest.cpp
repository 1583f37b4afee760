#include "backends/runtime/text/tokenizer/MergeQueue.h"

#include "gtest/gtest.h"

#include <random>
#include <set>

namespace mica::rt::tokenizer {
namespace {

struct Candidate {
  int32_t at, number;
};

TEST(MergeQueue, PopsTheLowestKeyThenTheLeftmost) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    MergeQueue<Candidate> queue;
    std::multiset<std::pair<uint32_t, int32_t>> expected;
    uint32_t keys = 1 + random() % 5;
    for (int step = 0; step < 400; ++step) {
      if (random() % 5 < 3) {
        auto key = random() % keys;
        // Ascending runs, as in texts, with some out of order.
        auto at = static_cast<int32_t>(random() % 4 ? step : random() % 400);
        queue.push(key, {at, step});
        expected.emplace(key, at);
        continue;
      }
      Candidate candidate{};
      ASSERT_EQ(queue.pop(candidate), !expected.empty());
      if (expected.empty())
        continue;
      EXPECT_EQ(candidate.at, expected.begin()->second);
      expected.erase(expected.begin());
    }
    for (Candidate candidate{}; queue.pop(candidate); expected.erase(expected.begin()))
      EXPECT_EQ(candidate.at, expected.begin()->second);
    EXPECT_TRUE(expected.empty());
  }
}

} // namespace
} // namespace mica::rt::tokenizer
