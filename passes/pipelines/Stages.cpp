//===- Stages.cpp - the stages of compilation and the way between them ------===//

#include "passes/pipelines/Stages.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mica;

static constexpr std::array<StageInfo, kStageCount> kStages{{
    {Stage::Model, "model", "mica ops as the model's modules have them, imported and checked"},
    {Stage::Fused, "fused", "mica ops after fusion, with precision assigned"},
    {Stage::Kernels, "kernels", "mica ops with a chosen implementation and layout each"},
    {Stage::Loops, "loops", "kernels of vector, scf and memref ops, bufferised, caches in place"},
    {Stage::Llvm, "llvm", "the LLVM dialect"},
    {Stage::Ll, "ll", "optimised LLVM IR"},
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
  if (options.keepBlocks)
    pm.addPass(createKeepBlocks());
  bool integers = options.weights == Precision::Int8 || options.weights == Precision::Int4;
  if (options.balance.value_or(integers))
    pm.addPass(createBalanceChannels());
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

void mica::buildPhases(OpPassManager &pm, const StageOptions &options) {
  pm.addPass(createSpecializePhases({options.costs.crossing, options.costs.fewRows}));
  pm.addPass(createAssignPromptRows({options.promptRows}));
  pm.addNestedPass<func::FuncOp>(createFuseCasts());
}

// Alive afterwards: mica, func, arith, scf.
void mica::buildFusedToKernels(OpPassManager &pm, const StageOptions &options) {
  const KernelCosts &costs = options.costs;
  buildPhases(pm, options);
  pm.addNestedPass<func::FuncOp>(createSelectKernels(
      {costs.manyRows, costs.tiles, costs.minWork, costs.onednnF32, costs.onednnBf16}));
  // Before the calls are rolled: their order is the order of the weights in the program.
  pm.addPass(createAssignLayouts());
  pm.addPass(createRollLayers());
  pm.addPass(createVerifyKernels());
}

StageTable StageTable::graphStages() {
  StageTable table;
  table.set(Stage::Fused, buildModelToFused);
  table.set(Stage::Kernels, buildFusedToKernels);
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

namespace {
/// The options of the named pipelines of mica-opt.
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  StageOptions defaults;

  Option<Precision> weights{*this, "weights", llvm::cl::desc("precision of matrices"),
                            llvm::cl::init(defaults.weights), precisionValues()};
  Option<Precision> kv{*this, "kv", llvm::cl::desc("precision of caches"),
                       llvm::cl::init(defaults.kv), precisionValues()};
  Option<bool> keepBlocks{*this, "keep-blocks",
                          llvm::cl::desc("weights keep blocks of integers that they are stored in"),
                          llvm::cl::init(defaults.keepBlocks)};
  Option<PromptRows> promptRows{*this, "prompt-rows",
                                llvm::cl::desc("type of rows of prompts that multiply blocks"),
                                llvm::cl::init(defaults.promptRows), promptRowsValues()};
  Option<int64_t> crossing{*this, "crossing", llvm::cl::desc("most rows of a `_several` function"),
                           llvm::cl::init(defaults.costs.crossing)};
  Option<int64_t> fewRows{*this, "few-rows", llvm::cl::desc("most rows of a `_few` function"),
                          llvm::cl::init(defaults.costs.fewRows)};
  Option<bool> tiles{*this, "tiles", llvm::cl::desc("the target has tile registers"),
                     llvm::cl::init(defaults.costs.tiles)};
  Option<int64_t> manyRows{*this, "many-rows", llvm::cl::desc("rows assumed of a `_many` function"),
                           llvm::cl::init(defaults.costs.manyRows)};
  Option<int64_t> minWork{*this, "min-work",
                          llvm::cl::desc("multiply-adds from which a library call pays"),
                          llvm::cl::init(defaults.costs.minWork)};
  Option<bool> onednnF32{*this, "onednn-f32", llvm::cl::desc("oneDNN is fast for f32"),
                         llvm::cl::init(defaults.costs.onednnF32)};
  Option<bool> onednnBf16{*this, "onednn-bf16", llvm::cl::desc("oneDNN is fast for bf16"),
                          llvm::cl::init(defaults.costs.onednnBf16)};

  StageOptions get() const {
    StageOptions options;
    options.weights = weights;
    options.kv = kv;
    options.keepBlocks = keepBlocks;
    options.promptRows = promptRows;
    options.costs.crossing = crossing;
    options.costs.fewRows = fewRows;
    options.costs.manyRows = manyRows;
    options.costs.tiles = tiles;
    options.costs.minWork = minWork;
    options.costs.onednnF32 = onednnF32;
    options.costs.onednnBf16 = onednnBf16;
    return options;
  }
};
} // namespace

void mica::registerPipelines() {
  static const auto add = [](StringRef name, StringRef help, auto build) {
    PassPipelineRegistration<PipelineOptions>(
        name, help,
        [build](OpPassManager &pm, const PipelineOptions &options) { build(pm, options.get()); });
  };
  add("mica-to-fused", "stage `model` -> `fused`", buildModelToFused);
  add("mica-fused-to-kernels", "stage `fused` -> `kernels`", buildFusedToKernels);
  add("mica-to-kernels", "stage `model` -> `kernels`",
      [](OpPassManager &pm, const StageOptions &options) {
        buildModelToFused(pm, options);
        buildFusedToKernels(pm, options);
      });
}
