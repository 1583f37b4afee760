#include "backends/runtime/ranks/RankThreads.h"
#include "backends/runtime/support/Threads.h"
#include "tests/unit/backends/runtime/ranks/ThreadRanks.h"

#include <gtest/gtest.h>

namespace mica::rt {
namespace {

/// Checks the threads of each of `size` ranks that may use the same processors.
void check(unsigned size, std::optional<unsigned> wanted, unsigned count, bool areCrowded) {
  runRanks(size, [&](SharedMemoryRanks &ranks) {
    Result<RankThreads> found = threadsOfRank(ranks, wanted);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->count, count) << size << " ranks";
    EXPECT_EQ(found->areCrowded, areCrowded) << size << " ranks of " << count << " threads";
  });
}

TEST(RankThreadsTest, ranksShareProcessors) {
  unsigned threads = defaultThreads(), processors = processorsAllowed();
  check(1, std::nullopt, threads, false);
  check(threads, std::nullopt, 1, false);
  check(processors + 1, std::nullopt, 1, true);
}

TEST(RankThreadsTest, moreThreadsThanProcessorsAreCrowded) {
  unsigned processors = processorsAllowed();
  check(1, processors, processors, false);
  check(1, processors + 1, processors + 1, true);
  check(2, processors, processors, true);
  check(processors, 1, 1, false);
}

TEST(RankThreadsTest, ranksWantDifferentNumbers) {
  unsigned processors = processorsAllowed();
  runRanks(2, [&](SharedMemoryRanks &ranks) {
    bool isFirst = ranks.rank() == 0;
    Result<RankThreads> found =
        threadsOfRank(ranks, isFirst ? std::optional(processors) : std::nullopt);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->count, isFirst ? processors : std::max(1u, defaultThreads() / 2));
    EXPECT_TRUE(found->areCrowded);
  });
}

} // namespace
} // namespace mica::rt
