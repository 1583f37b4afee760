//===- Pipeline.cpp - from stage `kernels` to stage `loops` ---------------===//

#include "backends/cpu/lowering/Pipeline.h"

#include "backends/cpu/lowering/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mica::cpu;

void mica::cpu::buildLoopsPipeline(OpPassManager &pm) {
  pm.addPass(createLowerToExec());
  // No CSE here: it would merge empty tensors, and so the buffers of different values.
  pm.addPass(createCanonicalizerPass());
  pm.addPass(bufferization::createEmptyTensorEliminationPass());
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion = bufferization::LayoutMapOption::IdentityLayoutMap;
  pm.addPass(bufferization::createOneShotBufferizePass(options));
  pm.addPass(bufferization::createDropEquivalentBufferResultsPass());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyInPlace());
  pm.addPass(createPlanBuffers());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyLoops());
}

namespace {
/// A pipeline registered without options rejects them without an error message.
struct NoOptions : PassPipelineOptions<NoOptions> {};
} // namespace

void mica::cpu::registerLoweringPasses() {
  registerMicaCpuLoweringPasses();
  PassPipelineRegistration<NoOptions>(
      "mica-kernels-to-loops", "stage `kernels` -> `loops`",
      [](OpPassManager &pm, const NoOptions &) { buildLoopsPipeline(pm); });
}
