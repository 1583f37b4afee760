#include "backends/cpu/dispatch/CostModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mica;
using namespace mica::cpu;

namespace {

TEST(CostModel, LargeMatmulsUseTheLibrary) {
  EXPECT_EQ(chooseKernel({64, 2048, 2048, Precision::F32}, {}), KernelKind::OneDnn);
  EXPECT_EQ(chooseKernel({64, 2048, 2048, Precision::BF16}, {}), KernelKind::OneDnn);
}

TEST(CostModel, SmallMatmulsUseGeneratedKernels) {
  EXPECT_EQ(chooseKernel({64, 32, 32, Precision::F32}, {}), KernelKind::Generated);
}

TEST(CostModel, ThresholdIsMinWork) {
  KernelCosts costs;
  costs.minWork = 64 * 64 * 64;
  EXPECT_EQ(chooseKernel({64, 64, 64, Precision::F32}, costs), KernelKind::OneDnn);
  EXPECT_EQ(chooseKernel({63, 64, 64, Precision::F32}, costs), KernelKind::Generated);
}

TEST(CostModel, FormatsThatTheLibraryIsSlowInAreGenerated) {
  KernelCosts costs;
  costs.onednnBf16 = false;
  EXPECT_EQ(chooseKernel({64, 2048, 2048, Precision::BF16}, costs), KernelKind::Generated);
  EXPECT_EQ(chooseKernel({64, 2048, 2048, Precision::F32}, costs), KernelKind::OneDnn);
}

TEST(CostModel, TheLibrarysFastTypesDependOnTheTarget) {
  auto costsOf = [](llvm::StringRef name) {
    return KernelCosts::of(llvm::cantFail(cpu::describeTarget(name)));
  };
  KernelCosts level3 = costsOf("x86-64-v3"), level4 = costsOf("x86-64-v4"),
              zen5 = costsOf("znver5"), rapids = costsOf("sapphirerapids");
  EXPECT_FALSE(level3.onednnF32 || level3.onednnBf16 || level3.tiles);
  EXPECT_TRUE(level4.onednnF32 && !level4.onednnBf16 && !level4.tiles);
  EXPECT_TRUE(zen5.onednnF32 && zen5.onednnBf16 && !zen5.tiles);
  EXPECT_TRUE(rapids.onednnF32 && rapids.onednnBf16 && rapids.tiles);
}

TEST(CostModel, SmallBatchesUseGeneratedKernels) {
  EXPECT_EQ(chooseKernel({32, 2048, 2048, Precision::F32}, {}), KernelKind::Generated);
  EXPECT_EQ(chooseKernel({33, 2048, 2048, Precision::F32}, {}), KernelKind::OneDnn);
}

TEST(CostModel, TilesBeatTheLibrary) {
  KernelCosts costs;
  costs.tiles = true;
  EXPECT_EQ(chooseKernel({512, 2048, 2048, Precision::BF16}, costs), KernelKind::Generated);
  EXPECT_EQ(chooseKernel({512, 2048, 2047, Precision::BF16}, costs), KernelKind::OneDnn)
      << "tiles take pairs";
  EXPECT_EQ(chooseKernel({512, 2048, 2048, Precision::F32}, costs), KernelKind::OneDnn);
}

TEST(CostModel, HugeExtentsDoNotOverflow) {
  EXPECT_EQ(
      chooseKernel({int64_t(1) << 31, int64_t(1) << 31, int64_t(1) << 31, Precision::F32}, {}),
      KernelKind::OneDnn);
}

class AttentionTiling : public testing::Test {
protected:
  AttentionTilingAttr choose(bool smallBatch, int64_t group) {
    return chooseTiling({smallBatch, group}, &context);
  }

  AttentionTiling() { context.loadDialect<MicaDialect>(); }
  mlir::MLIRContext context;
};

TEST_F(AttentionTiling, OnlySmallBatchesAreSplit) {
  EXPECT_EQ(choose(true, 4).getRows(), 1);
  EXPECT_TRUE(choose(true, 4).getSplit());
  EXPECT_FALSE(choose(false, 4).getSplit());
}

TEST_F(AttentionTiling, TilesHoldSimilarNumbersOfHeadsForAllGroupSizes) {
  EXPECT_EQ(choose(false, 1).getRows(), 16);
  EXPECT_EQ(choose(false, 4).getRows(), 8);
  EXPECT_EQ(choose(false, 7).getRows(), 4);
  EXPECT_EQ(choose(false, 64).getRows(), 4);
}

TEST_F(AttentionTiling, LargeGroupsAreSplitIntoTasks) {
  for (bool smallBatch : {true, false}) {
    for (int64_t group : {1, 7, 16, 34, 71})
      EXPECT_EQ(choose(smallBatch, group).getHeads(), 0) << group;
    EXPECT_EQ(choose(smallBatch, 64).getHeads(), 16);
    EXPECT_EQ(choose(smallBatch, 40).getHeads(), 10);
    EXPECT_EQ(choose(smallBatch, 20).getHeads(), 10);
  }
}

TEST_F(AttentionTiling, ChunksDoNotDependOnThePhase) {
  for (int64_t group : {1, 7, 64})
    EXPECT_EQ(choose(true, group).getChunk(), choose(false, group).getChunk());
}

} // namespace
