#include "passes/Kernels/CostModel.h"

#include <gtest/gtest.h>

using namespace mica;

namespace {

TEST(CostModel, BigProductsGoToTheLibrary) {
  EXPECT_EQ(chooseKernel({64, 2048, 2048, false}, {}), KernelKind::OneDnn);
  EXPECT_EQ(chooseKernel({64, 2048, 2048, true}, {}), KernelKind::OneDnn);
}

TEST(CostModel, SmallProductsAreGenerated) {
  EXPECT_EQ(chooseKernel({64, 32, 32, false}, {}), KernelKind::Generated);
}

TEST(CostModel, TheBorderIsTheWorkOfACall) {
  KernelCosts costs;
  costs.minWork = 64 * 64 * 64;
  EXPECT_EQ(chooseKernel({64, 64, 64, false}, costs), KernelKind::OneDnn);
  EXPECT_EQ(chooseKernel({63, 64, 64, false}, costs), KernelKind::Generated);
}

TEST(CostModel, FormatsThatTheLibraryIsSlowInAreGenerated) {
  KernelCosts costs;
  costs.onednnBf16 = false;
  EXPECT_EQ(chooseKernel({64, 2048, 2048, true}, costs), KernelKind::Generated);
  EXPECT_EQ(chooseKernel({64, 2048, 2048, false}, costs), KernelKind::OneDnn);
}

TEST(CostModel, HugeExtentsDoNotOverflow) {
  EXPECT_EQ(chooseKernel({int64_t(1) << 31, int64_t(1) << 31, int64_t(1) << 31, false}, {}),
            KernelKind::OneDnn);
}

} // namespace
