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
struct KernelPipelineOptions : StagePipelineOptions<KernelPipelineOptions> {
  KernelCosts costs;

  Option<bool> tiles{*this, "tiles", llvm::cl::desc("the target has tile registers"),
                     llvm::cl::init(costs.tiles)};
  Option<int64_t> manyRows{*this, "many-rows", llvm::cl::desc("rows assumed of a `_many` function"),
                           llvm::cl::init(costs.manyRows)};
  Option<int64_t> minWork{*this, "min-work",
                          llvm::cl::desc("multiply-adds from which a library call pays"),
                          llvm::cl::init(costs.minWork)};
  Option<bool> onednnF32{*this, "onednn-f32", llvm::cl::desc("oneDNN is fast for f32"),
                         llvm::cl::init(costs.onednnF32)};
  Option<bool> onednnBf16{*this, "onednn-bf16", llvm::cl::desc("oneDNN is fast for bf16"),
                          llvm::cl::init(costs.onednnBf16)};

  KernelCosts getCosts() const {
    KernelCosts costs;
    costs.tiles = tiles;
    costs.manyRows = manyRows;
    costs.minWork = minWork;
    costs.onednnF32 = onednnF32;
    costs.onednnBf16 = onednnBf16;
    return costs;
  }
};
} // namespace

void mica::registerDispatchPasses() {
  registerMicaCpuDispatchPasses();
  PassPipelineRegistration<KernelPipelineOptions>(
      "mica-fused-to-kernels", "stage `fused` -> `kernels`",
      [](OpPassManager &pm, const KernelPipelineOptions &options) {
        buildFusedToKernels(pm, options.get(), options.getCosts());
      });
  PassPipelineRegistration<KernelPipelineOptions>(
      "mica-to-kernels", "stage `model` -> `kernels`",
      [](OpPassManager &pm, const KernelPipelineOptions &options) {
        buildModelToFused(pm, options.get());
        buildFusedToKernels(pm, options.get(), options.getCosts());
      });
}
