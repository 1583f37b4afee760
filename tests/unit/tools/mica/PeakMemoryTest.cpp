//===- PeakMemoryTest.cpp - freed memory counts ---------------------------===//

#include "tools/mica/PeakMemory.h"

#include "gtest/gtest.h"

#include <chrono>
#include <sys/mman.h>
#include <thread>

using namespace mica::tool;

namespace {

TEST(PeakMemory, CountsFreedMemory) {
  constexpr size_t kBytes = size_t(128) << 20, kPage = 4096;
  PeakMemory peak;
  uint64_t before = peak.bytes();
  EXPECT_GT(before, 0u);
  void *data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  // Reserved memory does not count; touched memory is kept until it has been sampled.
  EXPECT_LT(peak.bytes(), before + kBytes / 2);
  for (size_t i = 0; i < kBytes; i += kPage)
    static_cast<volatile char *>(data)[i] = 1;
  // It is sampled every few milliseconds; a busy machine may be late.
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (peak.bytes() < before + kBytes / 10 * 9 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ::munmap(data, kBytes);
  EXPECT_GE(peak.bytes(), before + kBytes / 10 * 9);
}

} // namespace
