#include "backends/runtime/abi/KernelStack.h"
#include "backends/runtime/support/Threads.h"

#include <gtest/gtest.h>

#include <pthread.h>
#include <sys/resource.h>

using namespace mica::rt;

namespace {
constexpr rlim_t kLow = 300 << 10;

size_t stackOfThreads() {
  pthread_attr_t attributes;
  size_t size = 0;
  pthread_getattr_default_np(&attributes);
  pthread_attr_getstacksize(&attributes, &size);
  pthread_attr_destroy(&attributes);
  return size;
}

/// Limits apply to processes: each test runs in a separate one.
[[noreturn]] void exitAfterRaising() {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  limit.rlim_cur = kLow;
  setrlimit(RLIMIT_STACK, &limit);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, kLow);
  pthread_setattr_default_np(&small);
  bool allowed = bool(ensureStackSize(mica::rt::threadStackBytes));
  getrlimit(RLIMIT_STACK, &limit);
  bool raised =
      limit.rlim_cur > mica::rt::kernelStackBytes && stackOfThreads() > mica::rt::kernelStackBytes;
  _exit(allowed && raised ? 0 : 1);
}

[[noreturn]] void exitAfterRefusal() {
  rlimit limit{kLow, kLow};
  setrlimit(RLIMIT_STACK, &limit);
  Status status = ensureStackSize(mica::rt::threadStackBytes);
  fputs(status ? "allowed" : status.error().message.c_str(), stderr);
  _exit(2);
}

TEST(Stacks, GrowToTheSizeThatKernelsNeed) {
  EXPECT_EXIT(exitAfterRaising(), testing::ExitedWithCode(0), "");
}

TEST(Stacks, AHardLimitIsNamed) {
  EXPECT_EXIT(
      exitAfterRefusal(), testing::ExitedWithCode(2),
      "the stack is limited to 300 KiB .ulimit -Hs., but programs need 4096 KiB; raise the limit");
}

TEST(Stacks, AHigherLimitStays) {
  size_t before = stackOfThreads();
  ASSERT_TRUE(bool(ensureStackSize(mica::rt::threadStackBytes)));
  EXPECT_GE(stackOfThreads(), before);
}
} // namespace
