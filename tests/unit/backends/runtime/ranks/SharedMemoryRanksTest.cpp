#include "tests/unit/backends/runtime/ranks/ThreadRanks.h"

#include <csignal>
#include <gmock/gmock.h>
#include <random>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace mica::rt {
namespace {

using testing::HasSubstr;

/// The byte at `at` that a rank sends in an exchange.
std::byte byteOf(int64_t rank, int64_t exchange, uint64_t at) {
  return static_cast<std::byte>(rank * 41 + exchange * 17 + static_cast<int64_t>(at % 251));
}

class SharedMemoryRanksTest : public testing::TestWithParam<int64_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SharedMemoryRanksTest, testing::Values(1, 2, 3, 8));

// Exchanges of all kinds and sizes in a random order, larger ones than a buffer among them.
TEST_P(SharedMemoryRanksTest, exchangesArrive) {
  int64_t size = GetParam();
  runRanks(size, [&](SharedMemoryRanks &ranks) {
    ranks.setOversubscribed(size > 3);
    std::mt19937 random(7); // the same on all ranks
    for (int64_t exchange = 0; exchange < 300; ++exchange) {
      uint64_t bytes = random() % 20 == 0 ? random() % 1'000'000 : random() % 5000;
      bool gathers = random() % 2;
      std::vector<std::byte> own(bytes), all(bytes * static_cast<uint64_t>(size));
      int64_t from = gathers ? ranks.rank() : 0;
      if (gathers || ranks.rank() == 0)
        for (uint64_t i = 0; i < bytes; ++i)
          own[i] = byteOf(from, exchange, i);
      Status done = gathers ? ranks.allGather(own.data(), bytes, all.data())
                            : ranks.broadcast(own.data(), bytes);
      ASSERT_TRUE(done) << done.error().message;
      bool isRight = true;
      for (uint64_t i = 0; i < bytes; ++i) {
        if (!gathers)
          isRight &= own[i] == byteOf(0, exchange, i);
        for (int64_t rank = 0; gathers && rank < size; ++rank)
          isRight &= all[static_cast<uint64_t>(rank) * bytes + i] == byteOf(rank, exchange, i);
      }
      ASSERT_TRUE(isRight) << "exchange " << exchange << " of " << bytes << " bytes";
    }
  });
}

// Otherwise they would read bytes of another exchange from then on.
TEST(SharedMemoryRanksFailure, ranksAtDifferentExchanges) {
  constexpr uint64_t many = 300'000; // two pieces
  for (auto [rank0Gathers, bytes0, bytes1, expected] :
       {std::tuple(false, uint64_t(8), uint64_t(8),
                   "rank 0 on host .* broadcasts 8 bytes while rank 1 gathers 8 bytes"),
        std::tuple(true, uint64_t(8), uint64_t(16),
                   "rank 0 on host .* gathers 8 bytes while rank 1 gathers 16 bytes"),
        std::tuple(true, many, many + 1,
                   "rank 0 on host .* gathers 300000 bytes while rank 1 gathers 300001 bytes")}) {
    runRanks(2, [&, rank0Gathers = rank0Gathers, bytes0 = bytes0, bytes1 = bytes1,
                 expected = expected](SharedMemoryRanks &ranks) {
      std::vector<char> part(2 * many), all(4 * many);
      ASSERT_TRUE(ranks.allGather(part.data(), many, all.data()));
      if (ranks.rank() == 0 && !rank0Gathers) {
        EXPECT_TRUE(ranks.broadcast(part.data(), bytes0));
        return;
      }
      Status failed = ranks.allGather(part.data(), ranks.rank() == 0 ? bytes0 : bytes1, all.data());
      ASSERT_FALSE(failed);
      if (ranks.rank() == 1)
        EXPECT_THAT(failed.error().message, testing::ContainsRegex(expected));
    });
  }
}

TEST(SharedMemoryRanksFailure, allRanksSeeThatOneHasReportedIt) {
  runRanks(3, [](SharedMemoryRanks &ranks) {
    EXPECT_FALSE(ranks.isFailureAnnounced());
    char own = 0, all[3];
    ASSERT_TRUE(ranks.allGather(&own, 1, all));
    if (ranks.rank() == 1)
      ranks.announceFailure();
    ASSERT_TRUE(ranks.allGather(&own, 1, all));
    EXPECT_TRUE(ranks.isFailureAnnounced());
  });
}

TEST(SharedMemoryRanksFailure, failEndsTheProcess) {
  runRanks(1, [](SharedMemoryRanks &ranks) {
    EXPECT_EXIT(ranks.fail({"no longer"}), testing::ExitedWithCode(1), "no longer");
  });
}

TEST(SharedMemoryRanksFailure, aRankThatHasEndedIsNamed) {
  uint64_t bytes = SharedMemoryRanks::bytesFor(2);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  pid_t child = fork();
  if (child == 0) {
    SharedMemoryRanks other(memory, 1, 2);
    char part = 1, all[2];
    _exit(other.allGather(&part, 1, all) ? 0 : 1);
  }
  SharedMemoryRanks ranks(memory, 0, 2);
  char part = 0, all[2];
  EXPECT_TRUE(ranks.allGather(&part, 1, all));
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  Status failed = ranks.allGather(&part, 1, all);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("rank 1 on host "));
  munmap(memory, bytes);
}

// A rank in a container of its own does not know the process of another one by this number.
TEST(SharedMemoryRanksFailure, ranksOfOtherPidNamespacesHaveNotEnded) {
  uint64_t bytes = SharedMemoryRanks::bytesFor(2);
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  SharedMemoryRanks ranks(memory, 0, 2);
  enum Found { Alive, Ended, NoNamespace, NotHidden };
  pid_t parent = getpid(), child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWPID) != 0)
      _exit(NoNamespace);
    pid_t inside = fork(); // the first process of the namespace
    if (inside == 0) {
      SharedMemoryRanks other(memory, 1, 2);
      // The number must not be one of the few of this namespace.
      _exit(kill(parent, 0) == 0 ? NotHidden : other.hasEnded(0) ? Ended : Alive);
    }
    int status = -1;
    waitpid(inside, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  munmap(memory, bytes);
  if (WEXITSTATUS(status) == NoNamespace)
    GTEST_SKIP() << "PID namespaces cannot be created here";
  EXPECT_EQ(WEXITSTATUS(status), Alive);
}

} // namespace
} // namespace mica::rt
