#include "backends/runtime/serve/ServeCommand.h"

#include "gtest/gtest.h"

using namespace mica::rt;

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
} // namespace
