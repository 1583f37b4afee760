#include "backends/runtime/profile/Profile.h"
#include "backends/cpu/device/CpuDevice.h"
#include "backends/cpu/device/Peaks.h"
#include "backends/cpu/device/Pool.h"
#include "backends/cpu/features/InterleavedPages.h"
#include "backends/runtime/profile/ProfileReport.h"
#include "backends/runtime/profile/Roofline.h"

#include <gmock/gmock.h>

#include <set>

using namespace mica::rt;

namespace {
/// Two sequences: rows at positions 3, 4, 5 of the first and 9 of the second.
CallPositions twoSequences() {
  CallPositions call;
  std::vector<int32_t> sequences{0, 0, 0, 1}, positions{3, 4, 5, 9};
  call.set(sequences, positions);
  return call;
}

TEST(CallPositions, CountsEachSequencesPositionsOnce) {
  EXPECT_EQ(twoSequences().positions(0), 6 + 10);
  EXPECT_EQ(twoSequences().pairs(0), 4 + 5 + 6 + 10);
  EXPECT_EQ(CallPositions().positions(0), 0);
}

TEST(CallPositions, AWindowHidesOldPositions) {
  // Rows 3 to 5 with two positions each see 2 to 5; row 9 sees 8 and 9.
  EXPECT_EQ(twoSequences().positions(2), 4 + 2);
  EXPECT_EQ(twoSequences().pairs(2), 4 * 2);
  EXPECT_EQ(twoSequences().positions(100), twoSequences().positions(0));
  EXPECT_EQ(twoSequences().pairs(5), 4 + 5 + 5 + 5);
}

/// While a chunk is read, each unit of the next one is prefetched once, neighbors from other pages.
TEST(InterleavedPages, AskForTheNextChunk) {
  using namespace interleaved_pages;
  for (int64_t first : {int64_t(0), 5 * chunk}) {
    std::set<int64_t> asked;
    for (int64_t at = first; at < first + chunk; at += unit) {
      asked.insert(prefetchOffset(at));
      EXPECT_NE(prefetchOffset(at) / page, prefetchOffset(at + unit) / page);
      EXPECT_EQ(prefetchOffset(at + 100), prefetchOffset(at) + 100);
    }
    EXPECT_EQ(asked.size(), size_t(chunk / unit));
    EXPECT_EQ(*asked.begin(), first + chunk);
    EXPECT_EQ(*asked.rbegin(), first + 2 * chunk - unit);
  }
}

TEST(Work, SumsTheMemoryOfALaunch) {
  KernelCost cost{};
  cost.weightBytes = 1000;
  cost.rowWeightBytes = 10;
  cost.rowCacheBytes = 1;
  cost.rowFlops = 7;
  Work work = workOf(cost, 4, CallPositions());
  EXPECT_EQ(work.bytes, 1000 + 4 * 11);
  EXPECT_EQ(work.flops, 28);
}

TEST(Work, OfAttentionFollowsThePositions) {
  KernelCost cost{};
  cost.positionCacheBytes = 8;
  cost.pairFlops = 3;
  Work work = workOf(cost, 4, twoSequences());
  EXPECT_EQ(work.bytes, 8 * 16);
  EXPECT_EQ(work.flops, 3 * 25);
  cost.window = 2;
  EXPECT_EQ(workOf(cost, 4, twoSequences()).bytes, 8 * 6);
}

TEST(Work, ReadsNoMoreExpertsThanThereAre) {
  KernelCost cost{};
  cost.expertBytes = 100;
  cost.experts = 8;
  cost.rowExperts = 3;
  EXPECT_EQ(workOf(cost, 1, CallPositions()).bytes, 300);
  EXPECT_EQ(workOf(cost, 2, CallPositions()).bytes, 600);
  EXPECT_EQ(workOf(cost, 50, CallPositions()).bytes, 800);
}

TEST(Work, OfProductsFollowsTheirFormat) {
  MatmulShape shape{5, 64, 32, 32, 64, MatmulFormat::F32, false};
  EXPECT_EQ(workOf(shape).bytes, 64 * 32 * 4);
  EXPECT_EQ(workOf(shape).flops, 2 * 5 * 64 * 32);
  shape.format = MatmulFormat::Bf16;
  EXPECT_EQ(workOf(shape).bytes, 64 * 32 * 2);
}

TEST(Roofline, IsTheNearerLimit) {
  Peaks peaks{100, 1000, "test"};
  EXPECT_DOUBLE_EQ(shareOfRoofline(peaks, 50, 100, 1), 0.5);
  EXPECT_DOUBLE_EQ(shareOfRoofline(peaks, 50, 900, 1), 0.9);
  EXPECT_DOUBLE_EQ(shareOfRoofline(peaks, 50, 900, 2), 0.45);
  EXPECT_EQ(shareOfRoofline(peaks, 0, 0, 1), 0);
  EXPECT_EQ(shareOfRoofline(peaks, 1, 1, 0), 0);
}

TEST(Roofline, IsMeasuredWithTheProgramsInstructions) {
  Pool pool(1);
  Manifest manifest;
  manifest.weights = mica::Precision::BF16;
  Peaks peaks = measurePeaks(pool, manifest);
  EXPECT_EQ(peaks.instruction, "mulps and addps") << "a program for baseline x86-64";
  EXPECT_GT(peaks.bytesPerSecond, 0);
  EXPECT_GT(peaks.flopsPerSecond, 0);
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni"))
    GTEST_SKIP() << "needs avx512bf16 and avx512vnni";
  // Integers are converted to the type of the rows in prefill.
  manifest.features = {"avx512f", "avx512bf16", "avx512vnni"};
  manifest.weights = mica::Precision::Int8;
  for (auto [rows, instruction] :
       {std::pair("bf16", "vdpbf16ps"), std::pair("int8 per 32", "vpdpbusd"),
        std::pair("int16 per 32", "vpdpwssd")}) {
    manifest.rows = {{"decode", "int16 per 32"}, {"prompt", rows}};
    EXPECT_EQ(measurePeaks(pool, manifest).instruction, instruction);
  }
}

TEST(Profile, ExchangesHaveBytesButNoLimit) {
  Result<std::unique_ptr<Runtime>> runtime = CpuDevice().start(1, {});
  ASSERT_TRUE(runtime);
  Profile profile([](const char *) { return nullptr; }, **runtime, /*keepSpans=*/true);
  profile.start();
  for (int i = 0; i < 2; ++i)
    profile.exchange("all_gather", [] { return uint64_t(3'000'000); });
  profile.stop();
  ASSERT_EQ(profile.entries().size(), 1u);
  EXPECT_EQ(profile.entries()[0].launches, 2);
  EXPECT_EQ(profile.spans().front().exchangedBytes, 3e6);
  ProfiledRun run{"tg1", profile, 1, 1, Peaks{1, 1, "test"}};
  nlohmann::ordered_json json = profileJson(run), kernel = json["kernels"][0];
  EXPECT_EQ(kernel["kernel"], "all_gather");
  EXPECT_EQ(kernel["exchanged_bytes"], 6e6);
  EXPECT_EQ(kernel["bytes"], 0) << "of weights and caches";
  EXPECT_EQ(json["bytes_per_token"], 0);
  EXPECT_THAT(profileTable(run), testing::ContainsRegex("all_gather +2 .* [0-9.]+ +- +- "));
  EXPECT_THAT(profileTable(run), testing::Not(testing::HasSubstr("limit % above 100")));
}
} // namespace
