//===- Pipeline.cpp - from stage `fused` to stage `kernels` ---------------===//

#include "backends/cpu/dispatch/Pipeline.h"

#include "backends/cpu/target/CpuDialect.h"
#include "passes/pipelines/PipelineOptions.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

// Legal dialects afterwards: mica, func, arith, scf.
void mica::cpu::buildFusedToKernels(OpPassManager &pm, const StageOptions &options,
                                    const SelectKernelsOptions &select) {
  buildPhases(pm, options, [](ModuleOp module) { return exactRowsOn(targetOf(module)); });
  pm.addNestedPass<func::FuncOp>(createSelectKernels(select));
  // Before mica-roll-layers, because the order of calls determines the order of weights in the
  // program.
  pm.addPass(createAssignLayouts());
  pm.addPass(createRollLayers());
  pm.addPass(createVerifyKernels());
}

namespace {
/// Options of kernel selection.
struct KernelOptions {
  explicit KernelOptions(mlir::detail::PassOptions &options)
      : largeBatch(options, "large-batch",
                   llvm::cl::desc("assumed number of rows of `_large` functions (prefill)"),
                   llvm::cl::init(KernelCosts().largeBatch)),
        minWork(options, "min-work",
                llvm::cl::desc("minimum number of multiply-adds for a library call"),
                llvm::cl::init(KernelCosts().minWork)) {}

  SelectKernelsOptions get() const { return {largeBatch, minWork}; }

  PipelineOption<int64_t> largeBatch, minWork;
};

using FusedOptions = PipelineOptions<PhaseOptions, KernelOptions>;
using ModelOptions = PipelineOptions<FusionOptions, PhaseOptions, KernelOptions>;
} // namespace

void mica::cpu::registerDispatchPasses() {
  registerMicaCpuDispatchPasses();
  PassPipelineRegistration<FusedOptions>("mica-fused-to-kernels", "stage `fused` -> `kernels`",
                                         [](OpPassManager &pm, const FusedOptions &options) {
                                           StageOptions stage;
                                           options.addTo(stage);
                                           buildFusedToKernels(pm, stage, options.get());
                                         });
  PassPipelineRegistration<ModelOptions>("mica-to-kernels", "stage `model` -> `kernels`",
                                         [](OpPassManager &pm, const ModelOptions &options) {
                                           StageOptions stage;
                                           options.FusionOptions::addTo(stage);
                                           options.PhaseOptions::addTo(stage);
                                           buildModelToFused(pm, stage);
                                           buildFusedToKernels(pm, stage, options.get());
                                         });
}
