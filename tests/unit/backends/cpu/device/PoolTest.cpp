#include "backends/cpu/device/Pool.h"
#include "backends/runtime/support/AvailableMemory.h"
#include "backends/runtime/support/Threads.h"
#include "tests/unit/backends/runtime/FakeProgram.h"

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <mutex>
#include <thread>

using namespace mica::rt;

namespace {
using Range = std::pair<int64_t, int64_t>;

/// The sorted ranges of a parallelFor over `tasks`.
std::vector<Range> rangesOf(Pool &pool, int64_t tasks) {
  struct Context {
    std::mutex mutex;
    std::vector<Range> ranges;
  } context;
  pool.parallelFor(
      [](void *opaque, int64_t begin, int64_t end) {
        auto &self = *static_cast<Context *>(opaque);
        std::lock_guard lock(self.mutex);
        self.ranges.emplace_back(begin, end);
      },
      &context, tasks);
  std::sort(context.ranges.begin(), context.ranges.end());
  return context.ranges;
}

/// Increments every element of the range once.
void increment(void *opaque, int64_t begin, int64_t end) {
  auto *counts = static_cast<std::atomic<int> *>(opaque);
  for (int64_t i = begin; i < end; ++i)
    counts[i].fetch_add(1, std::memory_order_relaxed);
}

class PoolTest : public testing::TestWithParam<unsigned> {};

TEST_P(PoolTest, EveryTaskRunsOnce) {
  Pool pool(GetParam());
  EXPECT_EQ(pool.threads(), GetParam());
  for (int64_t tasks : {0, 1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 1000, 100003}) {
    std::vector<std::atomic<int>> counts(static_cast<size_t>(tasks));
    pool.parallelFor(increment, counts.data(), tasks);
    for (int64_t i = 0; i < tasks; ++i)
      ASSERT_EQ(counts[i].load(), 1) << "task " << i << " of " << tasks;
  }
}

TEST_P(PoolTest, RangesAreDisjointAndCoverAllTasks) {
  Pool pool(GetParam());
  for (int64_t tasks : {1, 2, 3, 10, 17, 1001}) {
    int64_t expected = 0;
    for (auto [begin, end] : rangesOf(pool, tasks)) {
      EXPECT_EQ(begin, expected);
      EXPECT_LT(begin, end);
      expected = end;
    }
    EXPECT_EQ(expected, tasks);
  }
}

TEST_P(PoolTest, MoreTasksThanFitInto32Bits) {
  Pool pool(GetParam());
  int64_t tasks = (int64_t(3) << 32) + 1, expected = 0;
  for (auto [begin, end] : rangesOf(pool, tasks)) {
    EXPECT_EQ(begin, expected);
    expected = end;
  }
  EXPECT_EQ(expected, tasks);
}

TEST(PoolSteals, TasksOfASlowThread) {
  for (unsigned threads : {2u, 4u}) {
    Pool pool(threads);
    // Task 0 waits for all tasks outside its piece. Those left in its thread's range only run if
    // other threads steal them.
    constexpr int64_t tasks = 4096;
    struct Context {
      std::chrono::steady_clock::time_point end =
          std::chrono::steady_clock::now() + std::chrono::seconds(60);
      std::atomic<int64_t> done{0};
      std::atomic<int64_t> before{-1}; ///< tasks done when task 0 ends
      int64_t piece = 0;
    } context;
    pool.parallelFor(
        [](void *opaque, int64_t begin, int64_t end) {
          auto &self = *static_cast<Context *>(opaque);
          if (begin == 0) {
            self.piece = end;
            while (self.done < tasks - end && std::chrono::steady_clock::now() < self.end)
              std::this_thread::yield();
            self.before = self.done.load();
          }
          self.done += end - begin;
        },
        &context, tasks);
    EXPECT_EQ(context.done, tasks);
    EXPECT_EQ(context.before, tasks - context.piece);
    EXPECT_LT(context.piece, tasks / threads) << "the thread takes its range in pieces";
  }
}

TEST_P(PoolTest, NestedCallsRunInline) {
  Pool pool(GetParam());
  struct Context {
    Pool &pool;
    std::atomic<int> inner{0};
    std::atomic<bool> foreign{false};
  } context{pool};
  EXPECT_FALSE(Pool::inParallelRegion());
  pool.parallelFor(
      [](void *opaque, int64_t begin, int64_t end) {
        auto &self = *static_cast<Context *>(opaque);
        if (self.pool.threads() > 1 && !Pool::inParallelRegion())
          self.foreign = true;
        for (int64_t i = begin; i < end; ++i)
          for (auto [first, last] : rangesOf(self.pool, 10))
            self.inner += static_cast<int>(last - first) * (first == 0 ? 1 : 100);
      },
      &context, 6);
  EXPECT_FALSE(Pool::inParallelRegion());
  EXPECT_FALSE(context.foreign);
  // Within a body, each nested call is one range; with a single thread, there is no nesting.
  EXPECT_EQ(context.inner, 60);
}

TEST_P(PoolTest, ManyShortTasksInSuccession) {
  Pool pool(GetParam());
  std::vector<std::atomic<int>> counts(37);
  for (int i = 0; i < 2000; ++i)
    pool.parallelFor(increment, counts.data(), i % 38);
  int64_t total = 0;
  for (auto &count : counts)
    total += count;
  int64_t expected = 0;
  for (int i = 0; i < 2000; ++i)
    expected += i % 38;
  EXPECT_EQ(total, expected);
}

TEST_P(PoolTest, WakesAfterSleeping) {
  Pool pool(GetParam());
  std::vector<std::atomic<int>> counts(8);
  for (int i = 0; i < 30; ++i) {
    // About the time after which workers go to sleep.
    std::this_thread::sleep_for(std::chrono::microseconds(900 + 10 * i));
    pool.parallelFor(increment, counts.data(), 8);
  }
  for (auto &count : counts)
    EXPECT_EQ(count, 30);
}

TEST_P(PoolTest, SeveralThreadsMayUseIt) {
  Pool pool(GetParam());
  std::vector<std::atomic<int>> counts(101);
  std::vector<std::thread> users;
  for (int u = 0; u < 3; ++u)
    users.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        pool.parallelFor(increment, counts.data(), 101);
    });
  for (std::thread &user : users)
    user.join();
  for (auto &count : counts)
    ASSERT_EQ(count, 1500);
}

INSTANTIATE_TEST_SUITE_P(Threads, PoolTest, testing::Values(1u, 2u, 3u, 4u, 16u));

double processorSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(PoolSleep, IdlePoolUsesNoProcessorTime) {
  Pool pool(4);
  std::vector<std::atomic<int>> counts(8);
  pool.parallelFor(increment, counts.data(), 8);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  // A spinning thread uses all available time of each pause; waking up late on a busy machine takes
  // a part of some pauses, but not of all.
  double min = 1;
  for (int pause = 0; pause < 5; ++pause) {
    double before = processorSeconds();
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    min = std::min(min, processorSeconds() - before);
  }
  EXPECT_LT(min, 0.003);
}

// A rank whose processors others need as well does not spin: neither its workers before a fork, nor
// the calling thread before a join.
TEST(PoolSleep, OversubscribedThreadsSleepAtOnce) {
  Pool pool(2);
  pool.setOversubscribed(true);
  auto sleepLong = [](void *, int64_t begin, int64_t) {
    if (begin == 1)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  double before = processorSeconds();
  for (int i = 0; i < 50; ++i) {
    pool.parallelFor(sleepLong, nullptr, 2);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // Spinning takes 1 ms before each fork.
  EXPECT_LT(processorSeconds() - before, 0.025);
}

TEST(PoolSleep, OversubscriptionDoesNotStall) {
  // Many more threads than processors: a join that only spins would wait for whole time slices.
  Pool pool(4 * std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::atomic<int>> counts(64);
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i)
    pool.parallelFor(increment, counts.data(), 64);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  for (auto &count : counts)
    EXPECT_EQ(count, 200);
}

TEST(Threads, QuotaOfCgroupVersion2) {
  EXPECT_EQ(quotaOf("max 100000"), 0u);
  EXPECT_EQ(quotaOf("200000 100000"), 2u);
  EXPECT_EQ(quotaOf("150000 100000"), 1u);
  EXPECT_EQ(quotaOf("50000 100000"), 1u);
  EXPECT_EQ(quotaOf("1600000 100000\n"), 16u);
  EXPECT_EQ(quotaOf("-1 100000"), 0u);
  EXPECT_EQ(quotaOf("100000 0"), 0u);
  EXPECT_EQ(quotaOf(""), 0u);
  EXPECT_EQ(quotaOf("garbage"), 0u);
}

/// The files that limit a process, in a separate folder.
class Cgroups : public testing::Test {
protected:
  void write(const std::string &path, const std::string &text) {
    std::string whole = root() + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << text << "\n";
  }
  std::string root() const { return folder.file("root"); }
  unsigned quota() const { return cgroupQuota(root()); }

  mica::test::TemporaryFolder folder;
};

TEST_F(Cgroups, MissingFilesAreUnlimited) {
  EXPECT_EQ(quota(), 0u);
  EXPECT_EQ(withinQuota(3, root()), 3u);
  EXPECT_EQ(withinQuota(0, root()), 1u);
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/cgroup.procs", "1");
  EXPECT_EQ(quota(), 0u);
}

TEST_F(Cgroups, SmallestOfAllLevels) {
  write("/proc/self/cgroup", "0::/user.slice/app.scope/inner");
  write("/sys/fs/cgroup/user.slice/app.scope/inner/cpu.max", "max 100000");
  EXPECT_EQ(quota(), 0u);
  write("/sys/fs/cgroup/user.slice/cpu.max", "600000 100000");
  EXPECT_EQ(quota(), 6u);
  write("/sys/fs/cgroup/user.slice/app.scope/cpu.max", "250000 100000");
  EXPECT_EQ(quota(), 2u);
  write("/sys/fs/cgroup/user.slice/app.scope/inner/cpu.max", "400000 100000");
  EXPECT_EQ(quota(), 2u);
  // A neighbor's limit has no effect.
  write("/sys/fs/cgroup/user.slice/other/cpu.max", "100000 100000");
  EXPECT_EQ(quota(), 2u);
}

TEST_F(Cgroups, RootOfAContainer) {
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_EQ(quota(), 3u);
  EXPECT_EQ(withinQuota(2, root()), 2u);
  EXPECT_EQ(withinQuota(8, root()), 3u);
}

TEST_F(Cgroups, VersionOne) {
  write("/proc/self/cgroup", "5:memory:/box\n4:cpu,cpuacct:/box/in\n1:name=systemd:/box\n0::/");
  write("/sys/fs/cgroup/cpu/box/in/cpu.cfs_quota_us", "-1");
  write("/sys/fs/cgroup/cpu/box/in/cpu.cfs_period_us", "100000");
  EXPECT_EQ(quota(), 0u);
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000");
  write("/sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "50000");
  EXPECT_EQ(quota(), 4u);
}

TEST_F(Cgroups, RespectTheLimitsOfAllLevels) {
  EXPECT_EQ(availableMemory(root()), uint64_t(1) << 30);
  write("/proc/meminfo", "MemTotal:  2000 kB\nMemAvailable:  1000 kB\nBuffers:  5 kB");
  EXPECT_EQ(availableMemory(root()), 1024000u);
  write("/proc/self/cgroup", "5:memory:/old\n0::/user.slice/app.scope");
  write("/sys/fs/cgroup/user.slice/app.scope/memory.max", "max");
  write("/sys/fs/cgroup/user.slice/app.scope/memory.current", "70000");
  EXPECT_EQ(availableMemory(root()), 1024000u);
  write("/sys/fs/cgroup/user.slice/memory.max", "300000");
  write("/sys/fs/cgroup/user.slice/memory.current", "100000");
  EXPECT_EQ(availableMemory(root()), 200000u);
  // Contents of files can be evicted.
  write("/sys/fs/cgroup/user.slice/memory.stat",
        "anon 30000\nfile 70000\ninactive_file 20000\nactive_file 40000\nunevictable 0\n");
  EXPECT_EQ(availableMemory(root()), 260000u);
  write("/sys/fs/cgroup/memory/old/memory.limit_in_bytes", "90000");
  write("/sys/fs/cgroup/memory/old/memory.usage_in_bytes", "95000");
  EXPECT_EQ(availableMemory(root()), 0u);
  write("/sys/fs/cgroup/memory/old/memory.stat",
        "inactive_file 1\ntotal_inactive_file 10000\ntotal_active_file 5000\n");
  EXPECT_EQ(availableMemory(root()), 10000u);
}

TEST_F(Cgroups, InvalidTextIsUnlimited) {
  for (const char *text : {"", "garbage", "0::", "0::relative", "::", "4:cpu", "0:/"}) {
    write("/proc/self/cgroup", text);
    EXPECT_EQ(quota(), 0u) << text;
  }
}

TEST(Threads, DefaultIsWithinTheMachine) {
  EXPECT_GE(defaultThreads(), 1u);
  EXPECT_LE(defaultThreads(), std::max(1u, std::thread::hardware_concurrency()));
}
} // namespace
