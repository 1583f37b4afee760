#include "backends/runtime/commands/Bench.h"
#include "tests/unit/backends/runtime/FakeProgram.h"

#include "gtest/gtest.h"

using namespace mica::rt;
using namespace mica::test;

namespace {

Manifest manifestOf(const std::string &text) {
  Result<Manifest> manifest = parseManifest(text);
  EXPECT_TRUE(manifest) << manifest.error().message;
  return *std::move(manifest);
}

constexpr double weights = 1000;
constexpr BenchTest generation(int64_t tokens, int64_t batch, int64_t depth) {
  return {.generate = true, .tokens = tokens, .batch = batch, .depth = depth};
}

TEST(BenchTest, CountsAllPositionsOfCaches) {
  Manifest manifest = manifestOf(fakeManifest("", fakeVocab, 100));
  // 16 bytes per position, 21.5 positions on average.
  EXPECT_EQ(bytesRead(generation(3, 2, 20), manifest, 3), 3 * weights + 3 * 2 * 21.5 * 16);
  BenchTest prompt{.generate = false, .tokens = 8, .batch = 1, .depth = 20};
  EXPECT_EQ(bytesRead(prompt, manifest, 2), 2 * weights + 2 * 24 * 16);
}

/// One of the caches has a window: beyond it, only as many positions are read.
TEST(BenchTest, CountsOnlyTheWindow) {
  Manifest manifest = manifestOf(fakeManifestOfWindows());
  double window = fakeWindow;
  EXPECT_EQ(bytesRead(generation(4, 1, 20), manifest, 4), 4 * weights + 4 * (4 * window + 12 * 22));
  // In the middle of the test, positions reach the window: half of the steps read fewer.
  BenchTest crossing = generation(4, 1, fakeWindow - 2);
  EXPECT_EQ(bytesRead(crossing, manifest, 4), 4 * weights + 4 * (4 * (window - 0.5) + 12 * window));
  // A call with several rows reads the windows of all of them.
  BenchTest prompt{.generate = false, .tokens = 8, .batch = 1, .depth = 20};
  EXPECT_EQ(bytesRead(prompt, manifest, 2), 2 * weights + 2 * (4 * (window + 3) + 12 * 24));
}

} // namespace
