#include "passes/pipelines/Stages.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"

#include <gtest/gtest.h>

using namespace mica;

namespace {

class StageTableTest : public testing::Test {
protected:
  std::string build(const StageTable &table, Stage from, Stage to) {
    return llvm::toString(table.buildPipeline(pm, from, to, {}));
  }
  mlir::MLIRContext context;
  mlir::PassManager pm{&context};
};

TEST_F(StageTableTest, BuildsThePassesBetweenStages) {
  StageTable table = StageTable::graphStages();
  table.set(Stage::Kernels,
            [](mlir::OpPassManager &pm, const StageOptions &options) { buildPhases(pm, options); });
  EXPECT_EQ(build(table, Stage::Fused, Stage::Kernels), "");
  size_t kernels = pm.size();
  EXPECT_GT(kernels, 0u);
  mlir::PassManager whole(&context);
  llvm::cantFail(table.buildPipeline(whole, Stage::Model, Stage::Kernels, {}));
  EXPECT_GT(whole.size(), kernels);
}

TEST_F(StageTableTest, NoPassesFromAStageToItself) {
  EXPECT_EQ(build(StageTable::graphStages(), Stage::Fused, Stage::Fused), "");
  EXPECT_EQ(pm.size(), 0u);
}

TEST_F(StageTableTest, RejectsEarlierStages) {
  EXPECT_EQ(build(StageTable::graphStages(), Stage::Kernels, Stage::Model),
            "stage `model` is before stage `kernels`");
}

TEST_F(StageTableTest, RefusesStagesWithoutABuilder) {
  EXPECT_EQ(build(StageTable::graphStages(), Stage::Model, Stage::Kernels),
            "no passes lead to stage `kernels`");
  EXPECT_EQ(pm.size(), 0u);
}

TEST_F(StageTableTest, TakesStagesOfABackend) {
  StageTable table = StageTable::graphStages();
  bool built = false;
  table.set(Stage::Kernels, [&](mlir::OpPassManager &, const StageOptions &) { built = true; });
  EXPECT_TRUE(table.has(Stage::Kernels));
  EXPECT_EQ(build(table, Stage::Fused, Stage::Kernels), "");
  EXPECT_TRUE(built);
}

} // namespace
