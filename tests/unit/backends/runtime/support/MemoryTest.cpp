#include "backends/runtime/support/Memory.h"
#include "backends/runtime/support/Process.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace mica::rt;

TEST(Memory, IsZeroAndAlignedToPages) {
  Result<Memory> memory = Memory::reserve(10000);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(memory->size(), 10000u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % 4096, 0u);
  const char *bytes = static_cast<const char *>(memory->data());
  EXPECT_TRUE(std::all_of(bytes, bytes + 10000, [](char byte) { return byte == 0; }));
}

TEST(Memory, IsAlignedToHugePages) {
  constexpr uint64_t large = uint64_t(2) << 20;
  for (uint64_t bytes : {uint64_t(1), large - 1, large, 3 * large + 5000}) {
    Result<Memory> memory = Memory::reserve(bytes, Pages::Huge);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(memory->size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->data()) % (bytes < large ? 4096 : large), 0u);
    char *data = static_cast<char *>(memory->data());
    data[0] = data[bytes - 1] = 1;
  }
}

TEST(Memory, MoreThanThereIsOfAddressesIsAnError) {
  for (Pages pages : {Pages::Small, Pages::Huge}) {
    Result<Memory> memory = Memory::reserve(uint64_t(1) << 60, pages);
    ASSERT_FALSE(memory);
    std::string begin =
        "cannot reserve 1152921504606846976 bytes of memory (Cannot allocate memory); ";
    EXPECT_EQ(memory.error().message,
              begin + "use fewer sequences or compile with a smaller --max-seq");
    EXPECT_EQ(Memory::reserve(uint64_t(1) << 60, pages, "do without").error().message,
              begin + "do without");
  }
}

TEST(Memory, OutOfMemoryNamesTheProcess) {
  EXPECT_EXIT(exitOutOfMemory(), testing::ExitedWithCode(1), "^mica: error: out of memory; free");
  EXPECT_EXIT(
      {
        nameForOutOfMemory("rank 1 on host a");
        exitOutOfMemory();
      },
      testing::ExitedWithCode(1), "^mica: error: rank 1 on host a: out of memory; free some or");
}

TEST(Memory, AssigningMovesIt) {
  Result<Memory> small = Memory::reserve(1), large = Memory::reserve(100);
  ASSERT_TRUE(small && large);
  void *data = large->data();
  *small = std::move(*large);
  EXPECT_EQ(small->data(), data);
  EXPECT_EQ(small->size(), 100u);
}
