#include "backends/cpu/dispatch/CostModel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mica;
using namespace mica::cpu;

namespace {

TEST(CostModel, BigProductsGoToTheLibrary) {
  EXPECT_EQ(chooseKernel({64, 2048, 2048, Precision::F32}, {}), KernelKind::OneDnn);
  EXPECT_EQ(chooseKernel({64, 2048, 2048, Precision::BF16}, {}), KernelKind::OneDnn);
}

TEST(CostModel, SmallProductsAreGenerated) {
  EXPECT_EQ(chooseKernel({64, 32, 32, Precision::F32}, {}), KernelKind::Generated);
}

TEST(CostModel, TheThresholdIsTheWorkOfACall) {
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

TEST(CostModel, SumsHaveTheSegmentsOfTheLibrary) {
  auto segment = [](Precision type, int64_t k, llvm::StringRef name) {
    return sumSegment(type, k, llvm::cantFail(cpu::describeTarget(name)));
  };
  for (Precision type : {Precision::F32, Precision::BF16}) {
    EXPECT_EQ(segment(type, 500, "znver5"), 500);
    EXPECT_EQ(segment(type, 1024, "znver5"), 512);
    EXPECT_EQ(segment(type, 1025, "znver5"), 1024);
    EXPECT_EQ(segment(type, 4096, "x86-64-v3"), 4096) << "generated kernels take all products";
  }
  EXPECT_EQ(segment(Precision::BF16, 4096, "x86-64-v4"), 4096) << "not by oneDNN";
  EXPECT_EQ(segment(Precision::BF16, 4096, "sapphirerapids"), 4096) << "by tiles";
  EXPECT_EQ(segment(Precision::F32, 4096, "sapphirerapids"), 1024);
}

TEST(CostModel, FewRowsAreGenerated) {
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
  AttentionTilingAttr choose(bool fewRows, int64_t group) {
    return chooseTiling({fewRows, group}, &context);
  }

  AttentionTiling() { context.loadDialect<MicaDialect>(); }
  mlir::MLIRContext context;
};

TEST_F(AttentionTiling, FewRowsAreSplitAndManyAreNot) {
  EXPECT_EQ(choose(true, 4).getRows(), 1);
  EXPECT_TRUE(choose(true, 4).getSplit());
  EXPECT_FALSE(choose(false, 4).getSplit());
}

TEST_F(AttentionTiling, TilesHoldAboutAsManyHeadsWhateverTheGroup) {
  EXPECT_EQ(choose(false, 1).getRows(), 16);
  EXPECT_EQ(choose(false, 4).getRows(), 8);
  EXPECT_EQ(choose(false, 7).getRows(), 4);
  EXPECT_EQ(choose(false, 64).getRows(), 4);
}

TEST_F(AttentionTiling, TasksTakeAPartOfManyHeads) {
  for (bool fewRows : {true, false}) {
    for (int64_t group : {1, 7, 16, 34, 71})
      EXPECT_EQ(choose(fewRows, group).getHeads(), 0) << group;
    EXPECT_EQ(choose(fewRows, 64).getHeads(), 16);
    EXPECT_EQ(choose(fewRows, 40).getHeads(), 10);
    EXPECT_EQ(choose(fewRows, 20).getHeads(), 10);
  }
}

TEST_F(AttentionTiling, ChunksDoNotDependOnThePhase) {
  for (int64_t group : {1, 7, 64})
    EXPECT_EQ(choose(true, group).getChunk(), choose(false, group).getChunk());
}

} // namespace
