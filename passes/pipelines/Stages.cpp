//===- Stages.cpp - the pipelines between stages --------------------------===//

#include "passes/pipelines/PipelineOptions.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mica;

// Legal dialects afterwards: mica, func, arith.
void mica::buildModelToFused(OpPassManager &pm, const StageOptions &options) {
  pm.addPass(createVerifyModel());
  // First, because later passes assign types and formats to the weights that this one reshapes.
  pm.addPass(createAbsorbLatent());
  if (options.preserveBlocks)
    pm.addPass(createPreserveBlocks({options.weights}));
  if (options.equalize.value_or(isInteger(options.weights)))
    pm.addPass(createEqualizeChannels());
  pm.addPass(createAssignPrecision({options.weights, options.kv}));
  pm.addNestedPass<func::FuncOp>(createFoldRepeatKv());
  // Channels are equalized and precision is assigned as for one rank; merged weights can't be
  // sharded.
  if (options.ranks > 1)
    pm.addPass(createShard({options.ranks}));
  // Before MergeLinears, which would merge gate and up like any other matmuls of the same rows.
  pm.addPass(createFuseGatedLinear());
  pm.addPass(createMergeLinears());
  pm.addNestedPass<func::FuncOp>(createFuseResidual());
  pm.addNestedPass<func::FuncOp>(createFuseQkvAppend());
  pm.addPass(createHoistRopeTables());
  pm.addNestedPass<func::FuncOp>(createFuseCasts());
  if (options.probes)
    pm.addPass(createInsertProbes({*options.probes}));
  pm.addPass(createVerifyFused());
}

void mica::buildPhases(OpPassManager &pm, const StageOptions &options,
                       const ExactRowsOf &exactRowsOf) {
  ExactRowsOf chosen = [stated = options.exactRows, exactRowsOf](ModuleOp module) {
    if (stated)
      return *stated;
    return exactRowsOf ? exactRowsOf(module) : ExactRows::BF16;
  };
  pm.addPass(createSpecializePhases(options.phases, chosen));
  pm.addPass(createAssignPromptRows(chosen));
  pm.addNestedPass<func::FuncOp>(createFuseCasts());
}

StageTable StageTable::graphStages() {
  StageTable table;
  table.set(Stage::Fused, buildModelToFused);
  return table;
}

llvm::Error StageTable::buildPipeline(OpPassManager &pm, Stage from, Stage to,
                                      const StageOptions &options) const {
  auto fail = [](const llvm::Twine &message) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
  };
  if (to < from)
    return fail("stage `" + getStageInfo(to).name + "` is before stage `" +
                getStageInfo(from).name + "`");
  auto begin = static_cast<size_t>(from) + 1, end = static_cast<size_t>(to) + 1;
  for (size_t stage = begin; stage < end; ++stage)
    if (!builders[stage])
      return fail("no passes lead to stage `" + getStageInfo(static_cast<Stage>(stage)).name + "`");
  for (size_t stage = begin; stage < end; ++stage)
    builders[stage](pm, options);
  return llvm::Error::success();
}

void mica::registerPipelines() {
  PassPipelineRegistration<PipelineOptions<FusionOptions>>(
      "mica-to-fused", "stage `model` -> `fused`",
      [](OpPassManager &pm, const PipelineOptions<FusionOptions> &options) {
        StageOptions stage;
        options.addTo(stage);
        buildModelToFused(pm, stage);
      });
}
