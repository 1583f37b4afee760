#include "backends/runtime/support/LargePages.h"
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

using namespace mica::program;

namespace {

constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// Bytes of addresses that this process has mapped.
uint64_t mappedBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * pageSize;
}

/// Whether repeating `body` leaves addresses mapped, of each turn a large page or more.
void expectNothingStays(const std::function<void()> &body) {
  constexpr uint64_t turns = 256;
  body();
  uint64_t before = mappedBytes();
  for (uint64_t turn = 0; turn < turns; ++turn)
    body();
  EXPECT_LT(mappedBytes(), before + turns * largePage / 2);
}

TEST(LargePages, BeginAtOneAndLeaveNothingElse) {
  for (uint64_t length : {uint64_t(1), largePage - 1, largePage, 5 * largePage + 4097}) {
    void *address = mapAtLargePage(length, kProtection, kFlags);
    ASSERT_NE(address, MAP_FAILED) << std::strerror(errno);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % largePage, 0u);
    askForLargePages(address, length);
    char *bytes = static_cast<char *>(address);
    bytes[0] = bytes[length - 1] = 1;
    // Of a range that is not mapped as a whole msync says ENOMEM.
    EXPECT_EQ(msync(address, alignToPage(length), MS_ASYNC), 0) << std::strerror(errno);
    uint64_t large = bytesInLargePages(address);
    EXPECT_EQ(large % largePage, 0u);
    EXPECT_LT(large, length + 4096);
    EXPECT_EQ(munmap(address, length), 0);
    expectNothingStays([&] { munmap(mapAtLargePage(length, kProtection, kFlags), length); });
  }
}

TEST(LargePages, OfAFileFromItsPlaceOn) {
  int file = memfd_create("large-pages", MFD_CLOEXEC);
  ASSERT_GE(file, 0);
  std::vector<char> bytes(4 * largePage + 100);
  for (size_t i = 0; i < bytes.size(); i += 1000)
    bytes[i] = static_cast<char>(i / 1000);
  ASSERT_EQ(pwrite(file, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  uint64_t length = bytes.size() - largePage;
  void *address = mapAtLargePage(length, PROT_READ, MAP_PRIVATE, file, largePage);
  ASSERT_NE(address, MAP_FAILED) << std::strerror(errno);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % largePage, 0u);
  EXPECT_EQ(std::memcmp(address, bytes.data() + largePage, length), 0);
  munmap(address, length);
  close(file);
}

TEST(LargePages, ErrorsAreThoseOfMmap) {
  EXPECT_EQ(mapAtLargePage(uint64_t(1) << 60, kProtection, kFlags), MAP_FAILED);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(mapAtLargePage(largePage, PROT_READ, MAP_PRIVATE, /*file=*/-1), MAP_FAILED);
  EXPECT_EQ(errno, EBADF);
  expectNothingStays([] { mapAtLargePage(largePage, PROT_READ, MAP_PRIVATE, /*file=*/-1); });
}

TEST(LargePages, AreCounted) {
  std::ifstream setting("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  if (!std::getline(setting, line) || line.find("[never]") != std::string::npos)
    GTEST_SKIP() << "this system lends none";
  void *address = mapAtLargePage(4 * largePage, kProtection, kFlags);
  ASSERT_NE(address, MAP_FAILED);
  EXPECT_EQ(bytesInLargePages(address), 0u);
  askForLargePages(address, 4 * largePage);
  std::memset(address, 1, 4 * largePage);
  EXPECT_GT(bytesInLargePages(address), 0u);
  munmap(address, 4 * largePage);
}

TEST(LargePages, NoneAreCountedWhereTheProcessMayHaveNone) {
  void *address = mapAtLargePage(4 * largePage, kProtection, kFlags);
  ASSERT_NE(address, MAP_FAILED);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  askForLargePages(address, 4 * largePage);
  std::memset(address, 1, 4 * largePage);
  uint64_t large = bytesInLargePages(address);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  EXPECT_EQ(large, 0u);
  munmap(address, 4 * largePage);
}

} // namespace
