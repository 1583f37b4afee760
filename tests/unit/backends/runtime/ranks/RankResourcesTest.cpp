#include "backends/runtime/ranks/RankResources.h"
#include "backends/runtime/support/Threads.h"
#include "tests/unit/backends/runtime/FakeProgram.h"
#include "tests/unit/backends/runtime/ranks/ThreadRanks.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace mica::rt {
namespace {

/// Checks the threads of each of `size` ranks that may use the same processors.
void check(unsigned size, std::optional<unsigned> wanted, unsigned count, bool areOversubscribed) {
  runRanks(size, [&](SharedMemoryRanks &ranks) {
    Result<RankResources> found = resourcesOfRank(ranks, wanted);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->threads, count) << size << " ranks";
    EXPECT_EQ(found->areOversubscribed, areOversubscribed)
        << size << " ranks of " << count << " threads";
  });
}

TEST(RankResourcesTest, ranksShareProcessors) {
  unsigned threads = defaultThreads(), processors = processorsAllowed();
  check(1, std::nullopt, threads, false);
  check(threads, std::nullopt, 1, false);
  check(processors + 1, std::nullopt, 1, true);
}

TEST(RankResourcesTest, moreThreadsThanProcessorsOversubscribe) {
  unsigned processors = processorsAllowed();
  check(1, processors, processors, false);
  check(1, processors + 1, processors + 1, true);
  check(2, processors, processors, true);
  check(processors, 1, 1, false);
}

/// A thread that may only use some of the processors until the object is destroyed.
class Bound {
public:
  explicit Bound(const std::vector<size_t> &processors) {
    cpu_set_t some;
    CPU_ZERO(&some);
    for (size_t processor : processors)
      CPU_SET(processor, &some);
    sched_getaffinity(0, sizeof before, &before);
    sched_setaffinity(0, sizeof some, &some);
  }
  ~Bound() { sched_setaffinity(0, sizeof before, &before); }

private:
  cpu_set_t before;
};

// mpirun is the parent of this process, and rank 0 and 1 are bound to the first and to one of two
// processors.
TEST(RankResourcesTest, processorsThatMpirunDoesNotUse) {
  std::vector<size_t> processors = affinity();
  if (processors.size() < 2 || affinity(getppid()) != processors)
    GTEST_SKIP() << "needs two processors that the parent process may use as well";
  for (size_t other : {0, 1})
    runRanks(2, [&](SharedMemoryRanks &ranks) {
      Bound bound({processors[ranks.rank() == 0 ? 0 : other]});
      Result<RankResources> found = resourcesOfRank(ranks, std::nullopt);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->usable, other + 1);
      EXPECT_EQ(found->available, processors.size());
      EXPECT_EQ(found->areOversubscribed, other == 0);
    });
  runRanks(2, [&](SharedMemoryRanks &ranks) {
    Result<RankResources> found = resourcesOfRank(ranks, std::nullopt);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->usable, processors.size()) << "both may use all of them";
  });
}

// Rank 0 may use one of the two processors that rank 1 may use.
TEST(RankResourcesTest, setsOfProcessorsOverlap) {
  std::vector<size_t> processors = affinity();
  if (processors.size() < 2 || processorsAllowed() < 2)
    GTEST_SKIP() << "needs two processors";
  processors.resize(2);
  for (unsigned ofSecond : {1u, 2u})
    runRanks(2, [&](SharedMemoryRanks &ranks) {
      bool isFirst = ranks.rank() == 0;
      Bound bound(isFirst ? std::vector{processors[0]} : processors);
      Result<RankResources> found =
          resourcesOfRank(ranks, isFirst ? std::nullopt : std::optional(ofSecond));
      ASSERT_TRUE(found);
      EXPECT_EQ(found->usable, 2u);
      EXPECT_EQ(found->areOversubscribed, ofSecond > 1) << "one thread of rank 0";
    });
  runRanks(2, [&](SharedMemoryRanks &ranks) {
    Bound bound(ranks.rank() == 0 ? std::vector{processors[0]} : processors);
    Result<RankResources> found = resourcesOfRank(ranks, std::nullopt);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->threads, 1u) << "half of the first processor is rank 0's";
    EXPECT_FALSE(found->areOversubscribed);
  });
}

// Ranks of a host share its memory, also if one of them sees less than the others.
TEST(RankResourcesTest, ranksShareMemory) {
  test::TemporaryFolder folder;
  for (int rank : {0, 1, 2}) {
    std::string proc = folder.file(std::to_string(rank) + "/proc");
    std::filesystem::create_directories(proc);
    std::ofstream(proc + "/meminfo") << "MemAvailable: " << 3000 - rank << " kB\n";
  }
  runRanks(3, [&](SharedMemoryRanks &ranks) {
    Result<RankResources> found =
        resourcesOfRank(ranks, std::nullopt, folder.file(std::to_string(ranks.rank())));
    ASSERT_TRUE(found);
    EXPECT_EQ(found->ranksOnHost, 3u);
    EXPECT_EQ(found->memory, 2998u * 1024 / 3);
  });
}

TEST(RankResourcesTest, theSmallestShareIsThatOfAllRanks) {
  EXPECT_EQ(memoryOfEachRank(std::vector<RankMemory>{{7, 100}}), 100u);
  // Four ranks on the larger host have less each than the one on the smaller host.
  EXPECT_EQ(
      memoryOfEachRank(std::vector<RankMemory>{{1, 200}, {2, 60}, {1, 200}, {1, 190}, {1, 200}}),
      47u);
  EXPECT_EQ(memoryOfEachRank(std::vector<RankMemory>{{1, 200}, {2, 60}, {1, 200}}), 60u);
}

TEST(RankResourcesTest, ranksWantDifferentNumbers) {
  unsigned processors = processorsAllowed();
  runRanks(2, [&](SharedMemoryRanks &ranks) {
    bool isFirst = ranks.rank() == 0;
    Result<RankResources> found =
        resourcesOfRank(ranks, isFirst ? std::optional(processors) : std::nullopt);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->threads, isFirst ? processors : std::max(1u, defaultThreads() / 2));
    EXPECT_TRUE(found->areOversubscribed);
  });
}

// Two virtual machines whose names are equal.
TEST(RankResourcesTest, hostsWithTheSameName) {
  test::TemporaryFolder folder;
  for (bool areOneHost : {true, false}) {
    runRanks(2, [&](SharedMemoryRanks &ranks) {
      std::string root = folder.file((areOneHost ? "one" : "two") + std::to_string(ranks.rank()));
      std::filesystem::create_directories(root + "/proc/sys/kernel/random");
      std::ofstream(root + "/proc/sys/kernel/random/boot_id")
          << (areOneHost ? 0 : ranks.rank()) << "\n";
      Result<RankResources> found = resourcesOfRank(ranks, std::nullopt, root);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->ranksOnHost, areOneHost ? 2u : 1u);
    });
  }
}

} // namespace
} // namespace mica::rt
