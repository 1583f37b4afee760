#include "backends/runtime/serve/ServeCommand.h"
#include "backends/runtime/serve/MemoryShares.h"

#include "gtest/gtest.h"

using namespace mica::rt;
using namespace mica::rt::serve;

namespace {
TEST(ServeCommand, CachesTakeHalfOfTheMemoryBesidesTheWeights) {
  EXPECT_EQ(defaultCacheBytes(1000, 400, 50), 200u);
  EXPECT_EQ(defaultCacheBytes(1000, 400, 200), 200u);
  // One sequence may need more, up to half of all memory.
  EXPECT_EQ(defaultCacheBytes(1000, 400, 201), 201u);
  EXPECT_EQ(defaultCacheBytes(1000, 0, 500), 500u);
  EXPECT_EQ(defaultCacheBytes(1000, 0, 501), 0u);
  EXPECT_EQ(defaultCacheBytes(1000, 400, 501), 200u);
}

TEST(MemoryShares, TheSumFits) {
  constexpr uint64_t mib = uint64_t(1) << 20;
  for (uint64_t available : {1024 * mib, 2048 * mib, 16384 * mib})
    for (uint64_t weights : {uint64_t(0), available / 2}) {
      uint64_t besides = available - weights;
      // The defaults of --cache-bytes and --checkpoint-bytes.
      uint64_t taken = defaultCacheBytes(available, besides, 1) + besides / 8;
      MemoryShares shares = memoryShares(available, besides, taken);
      uint64_t sum = shares.requests + shares.reading + shares.answers + shares.streams;
      EXPECT_EQ(shares.requests, besides * 3 / 32);
      EXPECT_EQ(shares.streams, besides * 3 / 64);
      EXPECT_EQ(sum, (besides - taken) / 8 * 7);
      EXPECT_LE(taken + sum, besides);
      // A request of the default --max-body-bytes fits.
      EXPECT_GE(shares.requests, 17 * mib);
    }
  // Small caches leave more.
  EXPECT_EQ(memoryShares(1024 * mib, 1024 * mib, 24 * mib).requests, 250 * mib);
  // Never nothing.
  for (uint64_t besides : {uint64_t(0), 1000 * mib})
    EXPECT_EQ(memoryShares(1024 * mib, besides, 1000 * mib).requests, 16 * mib);
}
} // namespace
