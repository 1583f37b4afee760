//===- Pipeline.cpp - from stage `kernels` to stage `loops` ----------------------------===//

#include "backends/cpu/lowering/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/OneShotAnalysis.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mica::cpu;

void mica::cpu::buildLoopsPipeline(OpPassManager &pm, const KernelTarget &target) {
  pm.addPass(createLowerToExec({target.bf16Dot, target.int8Dot, target.wide, target.fastBf16Dot,
                                target.tiles, target.prefetchPages}));
  // No CSE here: it would make one empty tensor, and so one buffer, of several.
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
struct LoopsOptions : PassPipelineOptions<LoopsOptions> {
  Option<bool> bf16Dot{*this, "bf16-dot", llvm::cl::desc("the target has vdpbf16ps"),
                       llvm::cl::init(false)};
  Option<bool> wideVectors{*this, "wide-vectors",
                           llvm::cl::desc("the target has registers of 512 bits"),
                           llvm::cl::init(true)};
  Option<bool> fastBf16Dot{
      *this, "fast-bf16-dot",
      llvm::cl::desc("vdpbf16ps takes no longer than two multiply-adds of f32"),
      llvm::cl::init(true)};
  Option<bool> int8Dot{*this, "int8-dot", llvm::cl::desc("the target has vpdpbusd"),
                       llvm::cl::init(false)};
  Option<bool> tiles{*this, "tiles", llvm::cl::desc("the target has tdpbf16ps"),
                     llvm::cl::init(false)};
  Option<bool> prefetchPages{
      *this, "prefetch-pages",
      llvm::cl::desc("the target reads faster when asked for lines of several pages in turn"),
      llvm::cl::init(false)};
};
} // namespace

void mica::cpu::registerLoweringPasses() {
  registerMicaCpuLoweringPasses();
  PassPipelineRegistration<LoopsOptions>(
      "mica-kernels-to-loops", "stage `kernels` -> `loops`",
      [](OpPassManager &pm, const LoopsOptions &options) {
        buildLoopsPipeline(pm, {options.bf16Dot, options.int8Dot, options.wideVectors,
                                options.fastBf16Dot, options.tiles, options.prefetchPages});
      });
}
