//===- PeakMemoryTest.cpp - memory that is given back counts ---------------===//

#include "tools/mica/PeakMemory.h"

#include "gtest/gtest.h"

#include <sys/mman.h>

using namespace mica::tool;

namespace {

TEST(PeakMemory, CountsWhatWasGivenBackAgain) {
  constexpr size_t kBytes = size_t(128) << 20, kPage = 4096;
  PeakMemory peak;
  uint64_t before = peak.bytes();
  EXPECT_GT(before, 0u);
  void *data = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  // Memory that is only reserved does not count; touched, it stays until it has been seen.
  EXPECT_LT(peak.bytes(), before + kBytes / 2);
  for (size_t i = 0; i < kBytes; i += kPage)
    static_cast<volatile char *>(data)[i] = 1;
  while (peak.bytes() < before + kBytes / 10 * 9)
    static_cast<volatile char *>(data)[0] = 1;
  ::munmap(data, kBytes);
  EXPECT_GE(peak.bytes(), before + kBytes / 10 * 9);
}

} // namespace
