#include "backends/cpu/program/LargePages.h"

#include <cerrno>
#include <cstring>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <vector>

using namespace mica::program;

namespace {

constexpr int kProtection = PROT_READ | PROT_WRITE;
constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// Whether `length` bytes from `address` on can be touched and nothing lies behind their last page.
void expectMapped(void *address, uint64_t length) {
  char *bytes = static_cast<char *>(address);
  bytes[0] = bytes[length - 1] = 1;
  uint64_t pages = (length + 4095) / 4096 * 4096;
  // Of a range that is not mapped as a whole msync says ENOMEM.
  EXPECT_EQ(msync(address, pages, MS_ASYNC), 0) << std::strerror(errno);
}

TEST(LargePages, BeginAtOneAndLeaveNothingElse) {
  for (uint64_t length : {uint64_t(1), largePage - 1, largePage, 5 * largePage + 4097}) {
    void *address = mapAtLargePage(length, kProtection, kFlags);
    ASSERT_NE(address, MAP_FAILED) << std::strerror(errno);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(address) % largePage, 0u);
    askForLargePages(address, length);
    expectMapped(address, length);
    uint64_t large = bytesInLargePages(address);
    EXPECT_EQ(large % largePage, 0u);
    EXPECT_LT(large, length + 4096);
    EXPECT_EQ(munmap(address, length), 0);
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
}

TEST(LargePages, NoneAreCountedWhereTheProcessMayHaveNone) {
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0);
  void *address = mapAtLargePage(4 * largePage, kProtection, kFlags);
  ASSERT_NE(address, MAP_FAILED);
  askForLargePages(address, 4 * largePage);
  std::memset(address, 1, 4 * largePage);
  EXPECT_EQ(bytesInLargePages(address), 0u);
  ASSERT_EQ(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
  munmap(address, 4 * largePage);
}

} // namespace
