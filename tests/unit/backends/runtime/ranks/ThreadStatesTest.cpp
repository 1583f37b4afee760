#include "backends/runtime/ranks/ThreadStates.h"

#include <atomic>
#include <gtest/gtest.h>
#include <semaphore>
#include <thread>
#include <unistd.h>

namespace mica::rt {
namespace {

TEST(ThreadStatesTest, statesOfThreads) {
  EXPECT_TRUE(isThreadBusy("12 (program) R 1 12", "running"));
  EXPECT_TRUE(isThreadBusy("12 (program) D 1 12", "0 0x3"));
  EXPECT_TRUE(isThreadBusy("12 (a) S (b) R 1 12", "running"));
  EXPECT_TRUE(isThreadBusy("12 (program) S 1 12", "-1 0x7ffe 0x401000")); // a page fault
  EXPECT_TRUE(isThreadBusy("12 (program) S 1 12", "17 0x3 0x7ffe"));      // pread64
  EXPECT_FALSE(isThreadBusy("12 (program) S 1 12", "170 0x3 0x7ffe"));
  EXPECT_FALSE(isThreadBusy("12 (program) S 1 12", "202 0x7ffe 0x80")); // futex
  EXPECT_FALSE(isThreadBusy("12 (a) R (b) S 1 12", "202 0x7ffe 0x80"));
  EXPECT_FALSE(isThreadBusy("12 (program) t 1 12", "-1 0x7ffe 0x401000"));
  EXPECT_FALSE(isThreadBusy("12 (program) T 1 12", ""));
  // Unknown.
  EXPECT_TRUE(isThreadBusy("", ""));
  EXPECT_TRUE(isThreadBusy("12 (program) ", ""));
  EXPECT_TRUE(isThreadBusy("12 (program) S 1 12", ""));
}

TEST(ThreadStatesTest, thisProcess) {
  EXPECT_TRUE(isProcessBusy(0));
  std::binary_semaphore end(0);
  std::thread waiting([&] { end.acquire(); });
  // As soon as the other thread sleeps.
  for (int i = 0; i < 10'000 && isProcessBusy(gettid()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(isProcessBusy(gettid()));
  end.release();
  waiting.join();
  std::atomic<bool> stop = false;
  std::thread computing([&] {
    while (!stop)
      ;
  });
  EXPECT_TRUE(isProcessBusy(gettid()));
  stop = true;
  computing.join();
}

} // namespace
} // namespace mica::rt
