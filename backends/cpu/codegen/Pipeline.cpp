//===- Pipeline.cpp - the order from stage loops to stage llvm ------------===//

#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/lowering/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace mica::cpu {

/// From vectors of any rank, loops and memrefs with offsets to one-dimensional vectors, blocks and
/// plain memrefs.
static void addSimplifyingPasses(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
}

static void addConversionPasses(OpPassManager &passes, const TargetDescription &target) {
  ConvertVectorToLLVMPassOptions vector;
  vector.x86Vector = true;
  passes.addPass(createConvertVectorToLLVMPass(vector));
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  if (target.tiles)
    passes.addPass(createLowerTilesPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  if (!target.avx512Bf16)
    passes.addPass(createBf16AsIntegersPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

void addLoopsToLlvmPasses(OpPassManager &passes, const TargetDescription &target) {
  passes.addPass(createVerifyLoops());
  passes.addPass(createForwardEntryPass());
  passes.addPass(createHoistAllocasPass());
  passes.addPass(createLowerExecPass());
  passes.addPass(createExpandMathPass());
  if (!target.avx512Bf16)
    passes.addPass(createExpandBf16Pass());
  addSimplifyingPasses(passes);
  addConversionPasses(passes, target);
  passes.addPass(createCheckLlvmPass());
}

namespace {
struct LoopsToLlvmOptions : PassPipelineOptions<LoopsToLlvmOptions> {
  Option<std::string> target{*this, "target", llvm::cl::desc("native or a CPU's name"),
                             llvm::cl::init("native")};
};
} // namespace

void registerCodegenPasses() {
  registerCpuCodegenPasses();
  // By hand, for PassPipelineRegistration cannot refuse an option's value.
  registerPassPipeline(
      "mica-loops-to-llvm", "stage `loops` -> `llvm`",
      [](OpPassManager &passes, StringRef text,
         function_ref<LogicalResult(const Twine &)> refuse) -> LogicalResult {
        LoopsToLlvmOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        llvm::Expected<TargetDescription> target = describeTarget(options.target);
        if (!target)
          return refuse("mica-loops-to-llvm: " + llvm::toString(target.takeError()));
        addLoopsToLlvmPasses(passes, *target);
        return success();
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> handle) {
        handle(LoopsToLlvmOptions());
      });
}

} // namespace mica::cpu
