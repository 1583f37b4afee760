#include "backends/runtime/support/HugePages.h"
#include "backends/runtime/program/Format.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>

using namespace mica;
using namespace mica::rt;

namespace {

constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// The number of bytes of addresses that this process has mapped.
uint64_t mappedBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * program::pageSize;
}

/// Whether repeating `body` leaks mapped addresses, at least a huge page per iteration.
void expectNothingStays(const std::function<void()> &body) {
  constexpr uint64_t iterations = 256;
  body();
  uint64_t before = mappedBytes();
  for (uint64_t iteration = 0; iteration < iterations; ++iteration)
    body();
  EXPECT_LT(mappedBytes(), before + iterations * hugePage / 2);
}

TEST(HugePages, MappingsAreAlignedAndTrimmed) {
  for (uint64_t length : {uint64_t(1), hugePage - 1, hugePage, 5 * hugePage + 4097}) {
    void *address = mapAtHugePage(length, kProtection, kFlags);
    ASSERT_NE(address, MAP_FAILED) << std::strerror(errno);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % hugePage, 0u);
    requestHugePages(address, length);
    char *bytes = static_cast<char *>(address);
    bytes[0] = bytes[length - 1] = 1;
    // msync returns ENOMEM for a range that is not completely mapped.
    EXPECT_EQ(msync(address, program::alignToPage(length), MS_ASYNC), 0) << std::strerror(errno);
    uint64_t large = bytesInHugePages(address);
    EXPECT_EQ(large % hugePage, 0u);
    EXPECT_LT(large, length + 4096);
    EXPECT_EQ(munmap(address, length), 0);
    expectNothingStays([&] { munmap(mapAtHugePage(length, kProtection, kFlags), length); });
  }
}

TEST(HugePages, MapAFileFromItsOffset) {
  int file = memfd_create("huge-pages", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  std::vector<char> bytes(4 * hugePage + 100);
  for (size_t i = 0; i < bytes.size(); i += 1000)
    bytes[i] = static_cast<char>(i / 1000);
  ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  uint64_t length = bytes.size() - hugePage;
  void *address = mapAtHugePage(length, PROT_READ, MAP_PRIVATE, file, hugePage);
  ASSERT_NE(address, MAP_FAILED) << std::strerror(errno);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % hugePage, 0u);
  EXPECT_EQ(std::memcmp(address, bytes.data() + hugePage, length), 0);
  munmap(address, length);
  close(file);
}

TEST(HugePages, ErrorsAreThoseOfMmap) {
  EXPECT_EQ(mapAtHugePage(uint64_t(1) << 60, kProtection, kFlags), MAP_FAILED);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(mapAtHugePage(hugePage, PROT_READ, MAP_PRIVATE, /*file=*/-1), MAP_FAILED);
  EXPECT_EQ(errno, EBADF);
  expectNothingStays([] { mapAtHugePage(hugePage, PROT_READ, MAP_PRIVATE, /*file=*/-1); });
}

TEST(HugePages, AreCounted) {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  if (!std::getline(setting, line) || line.find("[never]") != std::string::npos)
    GTEST_SKIP() << "this kernel provides none";
  void *address = mapAtHugePage(4 * hugePage, kProtection, kFlags);
  ASSERT_NE(address, MAP_FAILED);
  EXPECT_EQ(bytesInHugePages(address), 0u);
  requestHugePages(address, 4 * hugePage);
  std::memset(address, 1, 4 * hugePage);
  EXPECT_GT(bytesInHugePages(address), 0u);
  munmap(address, 4 * hugePage);
}

TEST(HugePages, NoneAreCountedWhereTheyAreDisabled) {
  void *address = mapAtHugePage(4 * hugePage, kProtection, kFlags);
  ASSERT_NE(address, MAP_FAILED);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  requestHugePages(address, 4 * hugePage);
  std::memset(address, 1, 4 * hugePage);
  uint64_t large = bytesInHugePages(address);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  EXPECT_EQ(large, 0u);
  munmap(address, 4 * hugePage);
}

} // namespace
