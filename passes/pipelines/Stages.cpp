//===- Stages.cpp - the stages of compilation and the way between them ----===//

#include "passes/pipelines/PipelineOptions.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mica;

static constexpr std::array<StageInfo, kStageCount> kStages{{
    {Stage::Model, "model", "mica ops as the model's modules have them, imported and checked"},
    {Stage::Fused, "fused", "mica ops after fusion, with precision assigned"},
    {Stage::Kernels, "kernels", "mica ops with a chosen implementation and layout each"},
    {Stage::Loops, "loops", "kernels of vector, scf and memref ops, bufferized, caches in place"},
    {Stage::Llvm, "llvm", "the LLVM dialect"},
    {Stage::Ll, "ll", "optimized LLVM IR"},
    {Stage::Asm, "asm", "assembly"},
    {Stage::Obj, "obj", "an object file"},
    {Stage::Exe, "exe", "the program"},
}};

ArrayRef<StageInfo> mica::getStages() { return kStages; }

const StageInfo &mica::getStageInfo(Stage stage) { return kStages[static_cast<size_t>(stage)]; }

std::optional<Stage> mica::parseStage(StringRef name) {
  for (const StageInfo &info : kStages)
    if (info.name == name)
      return info.stage;
  return std::nullopt;
}

// Alive afterwards: mica, func, arith.
void mica::buildModelToFused(OpPassManager &pm, const StageOptions &options) {
  pm.addPass(createVerifyModel());
  // First: weights keep one form from here on, whatever their precision.
  pm.addPass(createAbsorbLatent());
  if (options.preserveBlocks)
    pm.addPass(createPreserveBlocks({options.weights}));
  if (options.equalize.value_or(isInteger(options.weights)))
    pm.addPass(createEqualizeChannels());
  pm.addPass(createAssignPrecision({options.weights, options.kv}));
  pm.addNestedPass<func::FuncOp>(createFoldRepeatKv());
  // Gate and up first: they would otherwise be merged like any products of the same rows.
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
  pm.addPass(createSpecializePhases({options.phases.gemmThreshold, options.phases.few}));
  pm.addPass(createAssignPromptRows([stated = options.exactRows, exactRowsOf](ModuleOp module) {
    if (stated)
      return *stated;
    return exactRowsOf ? exactRowsOf(module) : ExactRows::BF16;
  }));
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
      return fail("no passes lead to stage `" + kStages[stage].name + "`");
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
