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
  // 16 bytes per position: rows at positions 20, 21, 22 attend to 21, 22, 23 positions.
  EXPECT_EQ(bytesRead(generation(3, 2, 20), manifest, 3), 3 * weights + 2 * (21 + 22 + 23) * 16);
  BenchTest prompt{.generate = false, .tokens = 8, .batch = 1, .depth = 20};
  EXPECT_EQ(bytesRead(prompt, manifest, 2), 2 * weights + (24 + 28) * 16);
}

/// One of the caches has a window: beyond it, only as many positions are read.
TEST(BenchTest, CountsOnlyTheWindow) {
  Manifest manifest = manifestOf(fakeManifestOfWindows());
  double window = fakeWindow;
  EXPECT_EQ(bytesRead(generation(4, 1, 20), manifest, 4),
            4 * weights + 4 * (4 * window) + 12 * (21 + 22 + 23 + 24));
  // In the middle of the test, positions reach the window: the first step reads fewer.
  BenchTest crossing = generation(4, 1, fakeWindow - 2);
  EXPECT_EQ(bytesRead(crossing, manifest, 4),
            4 * weights + 4 * (4 * window - 1) + 12 * (4 * window + 2));
  // A call with several rows reads the windows of all of them.
  BenchTest prompt{.generate = false, .tokens = 8, .batch = 1, .depth = 20};
  EXPECT_EQ(bytesRead(prompt, manifest, 2), 2 * weights + 2 * 4 * (window + 3) + 12 * (24 + 28));
}

/// Several layers may read one cache, and a step of the model reads nothing of another.
TEST(BenchTest, CountsACacheOncePerReader) {
  std::string text = fakeManifest("", fakeVocab, 100);
  auto reading = [&](const std::string &perToken, int64_t bytes) {
    std::string key = "\"bytes_per_token\": " + perToken;
    text.replace(text.find(key), key.size(),
                 key + ", \"bytes_read_per_position\": " + std::to_string(bytes));
  };
  reading("4", 0);
  reading("12", 36);
  EXPECT_EQ(bytesRead(generation(1, 1, 20), manifestOf(text), 1), weights + 21 * 36);
}

/// A call with drafts reads the cache once for all of its rows.
TEST(BenchTest, CountsACachePerCallWithDrafts) {
  Manifest manifest = manifestOf(fakeManifest("", fakeVocab, 100));
  BenchTest drafts{.generate = true, .tokens = 8, .batch = 1, .depth = 20, .mtp = 3};
  EXPECT_EQ(bytesRead(drafts, manifest, 2), 2 * weights + (24 + 28) * 16);
}

} // namespace
