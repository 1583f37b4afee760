//===- CompileSummaryTest.cpp - the last line of mica compile -------------===//

#include "tools/mica/CompileSummary.h"
#include "tools/mica/CompileSteps.h"

#include "llvm/ADT/StringExtras.h"

#include "gtest/gtest.h"

using namespace mica;
using namespace mica::tool;

namespace {

CompileSummary chatProgram() {
  CompileSummary summary;
  summary.output = "smol";
  summary.bytes = 95 << 20;
  summary.weights = Precision::BF16;
  summary.kv = Precision::BF16;
  summary.hasTokenizer = summary.hasChat = true;
  return summary;
}

TEST(CompileSummary, NamesPreservedFormats) {
  CompileSummary summary = chatProgram();
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, bf16); try ./smol chat");
  summary.source = "Q4_1";
  summary.preservedBlocks = {{"q4_1", 210}};
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, Q4_1 preserved); try ./smol chat");
  summary.preservedBlocks = {{"q5_0", 1}, {"q4_k", 180}, {"q6_k", 31}};
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, Q4_K, Q6_K and Q5_0 preserved); try ./smol chat");
}

TEST(CompileSummary, NamesFloatAndBlockFormats) {
  CompileSummary summary = chatProgram();
  summary.source = "F16";
  summary.rounded = {"F16"};
  summary.preservedBlocks = {{"q8_0", 1}};
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, F16 rounded to bf16, Q8_0 preserved); try ./smol chat");
  summary.source = "BF16";
  summary.rounded.clear();
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, bf16, Q8_0 preserved); try ./smol chat");
}

TEST(CompileSummary, NamesRoundedFloatsBesideBlocks) {
  CompileSummary summary = chatProgram();
  summary.source = "Q4_1";
  summary.preservedBlocks = {{"q4_1", 210}};
  summary.rounded = {"F16", "F32"};
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, F16 and F32 rounded to bf16, Q4_1 preserved); try ./smol chat");
}

/// "; KL divergence on MODEL: COST, of the cache alone COST".
std::string costText(CheckpointKind kind, llvm::StringRef cost, llvm::StringRef cache = "") {
  return ("; KL divergence on " + measuredModelOf(kind) + ": " + cost +
          (cache.empty() ? "" : ", of the cache alone ") + cache)
      .str();
}

TEST(CompileSummary, ShowsThePrecisionLossOfFormats) {
  constexpr CheckpointKind floats = CheckpointKind::Floats, blocks = CheckpointKind::Blocks;
  const PrecisionCosts &int4 = costsOf(Precision::Int4, floats),
                       &int8 = costsOf(Precision::Int8, floats);
  CompileSummary summary = chatProgram();
  summary.rounded = {"F16"};
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, F16 rounded to bf16); try ./smol chat");
  summary.rounded.clear();
  summary.weights = Precision::Int4;
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, int4" +
                                  costText(floats, int4.weights.exactRows) + "); try ./smol chat");
  summary.statistics = ActivationStatistics::Calibrated;
  summary.kv = Precision::Int8;
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, int4, int8 cache" +
                                  costText(floats, int4.calibrated.exactRows, int8.cache) +
                                  "); try ./smol chat");
  // There is no figure for that.
  summary.weights = Precision::Int8;
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, int8, int8 cache" +
                costText(floats, int8.weights.exactRows.str() + " without statistics", int8.cache) +
                "); try ./smol chat");
  summary = chatProgram();
  summary.kv = Precision::Int8;
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, bf16, int8 cache" +
                                  costText(floats, int8.cache) + "); try ./smol chat");
}

TEST(CompileSummary, ShowsThePrecisionLossOfConvertedBlocks) {
  constexpr CheckpointKind blocks = CheckpointKind::Blocks;
  CompileSummary summary = chatProgram();
  summary.source = "Q4_1";
  summary.isConverted = true;
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, Q4_1 expanded to bf16" +
                costText(blocks, costsOf(Precision::BF16, blocks).weights.exactRows) +
                "); try ./smol chat");
  summary.weights = Precision::F32;
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, Q4_1 expanded to f32); try ./smol chat");
  summary.weights = Precision::Int8;
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, Q4_1 requantized to int8" +
                costText(blocks, costsOf(Precision::Int8, blocks).weights.exactRows) +
                "); try ./smol chat");
  summary.weights = Precision::Int4;
  summary.statistics = ActivationStatistics::Calibrated;
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, Q4_1 requantized to int4" +
                costText(blocks, costsOf(Precision::Int4, blocks).calibrated.exactRows) +
                "); try ./smol chat");
  // Most weights are numbers.
  summary.statistics = ActivationStatistics::None;
  summary.source = "F16";
  summary.rounded = {"F16"};
  summary.weights = Precision::BF16;
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, F16 rounded to bf16" +
                costText(blocks, costsOf(Precision::BF16, blocks).weights.exactRows) +
                "); try ./smol chat");
}

/// One figure of the same program; else that without statistics, which is said.
TEST(CompileSummary, CostsAreOfTheStatistics) {
  PrecisionCosts costs{{".1", ".2"}, {".3", ".4"}, {".5", ".6"}, ""};
  using enum ActivationStatistics;
  for (auto [statistics, exactRows, int8Rows] :
       {std::tuple(None, ".1", ".2"), std::tuple(Calibrated, ".3", ".4"),
        std::tuple(Imatrix, ".5", ".6"),
        std::tuple(FewMatrices, ".1 without statistics", ".2 without statistics")}) {
    EXPECT_EQ(costs.textOf(statistics, /*hasInt8Rows=*/false), exactRows);
    EXPECT_EQ(costs.textOf(statistics, /*hasInt8Rows=*/true), int8Rows);
  }
  // Programs without blocks have no int8 rows.
  EXPECT_EQ((PrecisionCosts{{".1", ""}, {"", ""}, {"", ""}, ""}.textOf(None, true)), ".1");
  EXPECT_EQ((PrecisionCosts{{"", ""}, {"", ""}, {"", ""}, ""}.textOf(Imatrix, false)), "");
}

TEST(CompileSummary, IncludesActivationsOfPrompts) {
  CompileSummary summary = chatProgram();
  summary.preservedBlocks = {{"q8_0", 4}};
  summary.hasInt8Rows = true;
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, Q8_0 preserved, int8 activations in prefill" +
                costText(CheckpointKind::Blocks, "up to " + maxCostOfInt8Rows().str()) +
                "); try ./smol chat");
  // One figure of the same program, and not the sum of two.
  summary.preservedBlocks.clear();
  summary.weights = Precision::Int8;
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, int8, int8 activations in prefill" +
                costText(CheckpointKind::Floats,
                         costsOf(Precision::Int8, CheckpointKind::Floats).weights.int8Rows) +
                "); try ./smol chat");
}

TEST(CompileSummary, SuggestsACommandThatWorks) {
  CompileSummary summary = chatProgram();
  summary.output = "out/it's new";
  summary.hasChat = false;
  EXPECT_EQ(summary.toText(), "wrote out/it's new (95.00 MiB, bf16); try 'out/it'\\''s new' "
                              "'Once upon a time'");
  summary.output = "/tmp/a";
  summary.hasTokenizer = false;
  EXPECT_EQ(summary.toText(), "wrote /tmp/a (95.00 MiB, bf16); try /tmp/a --tokens 1,2,3");
  summary.foreignTarget = "znver5";
  EXPECT_EQ(summary.toText(), "wrote /tmp/a (95.00 MiB, bf16); copy it to a machine with a znver5");
}

TEST(CompileSummary, OfSeveralRanksStartsMpirun) {
  CompileSummary summary = chatProgram();
  summary.ranks = 2;
  summary.plugins = {"mica-mpi-mpich.so", "mica-mpi-openmpi.so"};
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, bf16), with mica-mpi-mpich.so and mica-mpi-openmpi.so next to "
            "it; try mpirun -n 2 --bind-to none ./smol chat");
  summary.foreignTarget = "znver5";
  EXPECT_EQ(summary.toText(),
            "wrote smol (95.00 MiB, bf16), with mica-mpi-mpich.so and mica-mpi-openmpi.so next to "
            "it; copy them to machines with a znver5");
  // A warning has said that it cannot be started.
  summary.foreignTarget = "";
  summary.plugins.clear();
  EXPECT_EQ(summary.toText(), "wrote smol (95.00 MiB, bf16)");
}

TEST(CompileSummary, IsOneLineWithoutControlCharacters) {
  CompileSummary summary = chatProgram();
  summary.output = "a\nb\x1b[1m";
  EXPECT_EQ(summary.toText(), "wrote a\\nb\\x1b[1m (95.00 MiB, bf16); try './a\\nb\\x1b[1m' chat");
}

/// The shares reported by a compilation to a program, in order.
std::vector<double> sharesOf(double expectedBytes, uint64_t bytes) {
  CompileSteps steps(expectedBytes);
  std::vector<double> shares;
  auto tell = [&](const cpu::CompileProgress &progress) {
    shares.push_back(steps.shareOf(progress));
  };
  for (Stage stage : {Stage::Model, Stage::Fused, Stage::Kernels, Stage::Loops, Stage::Llvm,
                      Stage::Ll, Stage::Obj}) {
    tell({stage});
    tell({stage, /*isReached=*/true});
  }
  for (uint64_t packed = 0; packed <= bytes; packed += bytes / 8)
    tell({Stage::Exe, /*isReached=*/false, packed, bytes});
  tell({Stage::Exe, /*isReached=*/true, bytes, bytes});
  return shares;
}

TEST(CompileSteps, ShareGrowsFromNothingToAll) {
  // Also if there are more or fewer bytes than expected.
  for (double expected : {1e3, 8e9, 4e10}) {
    std::vector<double> shares = sharesOf(expected, 8'000'000'000);
    EXPECT_EQ(shares.front(), 0);
    EXPECT_DOUBLE_EQ(shares.back(), 1);
    EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  }
  // Stages take most of the time of a small model, and weights that of a large one.
  EXPECT_GT(sharesOf(8e6, 8'000'000)[12], 0.6);
  EXPECT_LT(sharesOf(8e9, 8'000'000'000)[12], 0.2);
}

TEST(CompileSteps, DescribesStagesAndBytes) {
  EXPECT_EQ(CompileSteps::describe({Stage::Loops}), "stage loops");
  EXPECT_EQ(CompileSteps::describe({Stage::Exe, /*isReached=*/false, 1 << 20, 4 << 20}),
            "weights, 1.00 MiB of 4.00 MiB");
}

} // namespace
