#include "backends/runtime/ranks/RankThreads.h"
#include "backends/runtime/support/Threads.h"
#include "tests/unit/backends/runtime/ranks/ThreadRanks.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace mica::rt {
namespace {

/// Checks the threads of each of `size` ranks that may use the same processors.
void check(unsigned size, std::optional<unsigned> wanted, unsigned count, bool areOversubscribed) {
  runRanks(size, [&](SharedMemoryRanks &ranks) {
    Result<RankThreads> found = threadsOfRank(ranks, wanted);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->count, count) << size << " ranks";
    EXPECT_EQ(found->areOversubscribed, areOversubscribed)
        << size << " ranks of " << count << " threads";
  });
}

TEST(RankThreadsTest, ranksShareProcessors) {
  unsigned threads = defaultThreads(), processors = processorsAllowed();
  check(1, std::nullopt, threads, false);
  check(threads, std::nullopt, 1, false);
  check(processors + 1, std::nullopt, 1, true);
}

TEST(RankThreadsTest, moreThreadsThanProcessorsOversubscribe) {
  unsigned processors = processorsAllowed();
  check(1, processors, processors, false);
  check(1, processors + 1, processors + 1, true);
  check(2, processors, processors, true);
  check(processors, 1, 1, false);
}

/// A thread that may only use one of the processors until the object is destroyed.
class Bound {
public:
  explicit Bound(size_t processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    sched_getaffinity(0, sizeof before, &before);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~Bound() { sched_setaffinity(0, sizeof before, &before); }

private:
  cpu_set_t before;
};

// mpirun is the parent of this process, and rank 0 and 1 are bound to the first and to one of two
// processors.
TEST(RankThreadsTest, processorsThatMpirunDoesNotUse) {
  std::vector<size_t> processors = affinity();
  if (processors.size() < 2 || affinity(getppid()) != processors)
    GTEST_SKIP() << "needs two processors that the parent process may use as well";
  for (size_t other : {0, 1})
    runRanks(2, [&](SharedMemoryRanks &ranks) {
      Bound bound(processors[ranks.rank() == 0 ? 0 : other]);
      Result<RankThreads> found = threadsOfRank(ranks, std::nullopt);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->usable, other + 1);
      EXPECT_EQ(found->available, processors.size());
      EXPECT_EQ(found->areOversubscribed, other == 0);
    });
  runRanks(2, [&](SharedMemoryRanks &ranks) {
    Result<RankThreads> found = threadsOfRank(ranks, std::nullopt);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->usable, processors.size()) << "both may use all of them";
  });
}

TEST(RankThreadsTest, ranksWantDifferentNumbers) {
  unsigned processors = processorsAllowed();
  runRanks(2, [&](SharedMemoryRanks &ranks) {
    bool isFirst = ranks.rank() == 0;
    Result<RankThreads> found =
        threadsOfRank(ranks, isFirst ? std::optional(processors) : std::nullopt);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->count, isFirst ? processors : std::max(1u, defaultThreads() / 2));
    EXPECT_TRUE(found->areOversubscribed);
  });
}

} // namespace
} // namespace mica::rt
