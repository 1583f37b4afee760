//===- Pipeline.cpp - from stage `fused` to stage `kernels` -------------------===//

#include "backends/cpu/dispatch/Passes.h"
#include "passes/pipelines/PipelineOptions.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mica;

// Alive afterwards: mica, func, arith, scf.
void mica::buildFusedToKernels(OpPassManager &pm, const StageOptions &options,
                               const KernelCosts &costs) {
  buildPhases(pm, options);
  pm.addNestedPass<func::FuncOp>(createSelectKernels(
      {costs.manyRows, costs.tiles, costs.minWork, costs.onednnF32, costs.onednnBf16}));
  // Before the calls are rolled: their order is the order of the weights in the program.
  pm.addPass(createAssignLayouts());
  pm.addPass(createRollLayers());
  pm.addPass(createVerifyKernels());
}

namespace {
/// What chooses kernels can be told.
struct KernelOptions {
  explicit KernelOptions(mlir::detail::PassOptions &options)
      : tiles(options, "tiles", llvm::cl::desc("the target has tile registers"),
              llvm::cl::init(KernelCosts().tiles)),
        onednnF32(options, "onednn-f32", llvm::cl::desc("oneDNN is fast for f32"),
                  llvm::cl::init(KernelCosts().onednnF32)),
        onednnBf16(options, "onednn-bf16", llvm::cl::desc("oneDNN is fast for bf16"),
                   llvm::cl::init(KernelCosts().onednnBf16)),
        manyRows(options, "many-rows", llvm::cl::desc("rows assumed of a `_many` function"),
                 llvm::cl::init(KernelCosts().manyRows)),
        minWork(options, "min-work", llvm::cl::desc("multiply-adds from which a library call pays"),
                llvm::cl::init(KernelCosts().minWork)) {}

  KernelCosts getCosts() const {
    KernelCosts costs;
    costs.tiles = tiles;
    costs.manyRows = manyRows;
    costs.minWork = minWork;
    costs.onednnF32 = onednnF32;
    costs.onednnBf16 = onednnBf16;
    return costs;
  }

  PipelineOption<bool> tiles, onednnF32, onednnBf16;
  PipelineOption<int64_t> manyRows, minWork;
};

using FusedOptions = PipelineOptions<PhaseOptions, KernelOptions>;
using ModelOptions = PipelineOptions<FusionOptions, PhaseOptions, KernelOptions>;
} // namespace

void mica::registerDispatchPasses() {
  registerMicaCpuDispatchPasses();
  PassPipelineRegistration<FusedOptions>("mica-fused-to-kernels", "stage `fused` -> `kernels`",
                                         [](OpPassManager &pm, const FusedOptions &options) {
                                           StageOptions stage;
                                           options.addTo(stage);
                                           buildFusedToKernels(pm, stage, options.getCosts());
                                         });
  PassPipelineRegistration<ModelOptions>("mica-to-kernels", "stage `model` -> `kernels`",
                                         [](OpPassManager &pm, const ModelOptions &options) {
                                           StageOptions stage;
                                           options.FusionOptions::addTo(stage);
                                           options.PhaseOptions::addTo(stage);
                                           buildModelToFused(pm, stage);
                                           buildFusedToKernels(pm, stage, options.getCosts());
                                         });
}
