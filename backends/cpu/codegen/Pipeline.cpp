//===- Pipeline.cpp - from stage loops to stage llvm ----------------------===//

#include "backends/cpu/codegen/Pipeline.h"

#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/lowering/Passes.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace mica::cpu {

/// Lowers vectors of any rank, loops and memrefs with offsets to one-dimensional vectors, branches
/// and plain memrefs.
static void addSimplifyingPasses(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createConvertVectorToSCFPass(VectorTransferToSCFOptions().enableFullUnroll()));
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createSCFToControlFlowPass());
}

static void addConversionPasses(OpPassManager &passes) {
  ConvertVectorToLLVMPassOptions vector;
  vector.x86Vector = true;
  passes.addPass(createConvertVectorToLLVMPass(vector));
  passes.addPass(createConvertMathToLLVMPass());
  passes.addPass(createConvertIndexToLLVMPass());
  passes.addPass(createArithToLLVMConversionPass());
  passes.addPass(createUBToLLVMConversionPass());
  passes.addPass(createFinalizeMemRefToLLVMConversionPass());
  passes.addPass(createConvertFuncToLLVMPass());
  passes.addPass(createLowerTilesPass());
  passes.addPass(createConvertControlFlowToLLVMPass());
  passes.addPass(createBf16AsIntegersPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(createReconcileUnrealizedCastsPass());
}

void addLoopsToLlvmPasses(OpPassManager &passes) {
  passes.addPass(createVerifyLoops());
  passes.addPass(createForwardEntryPass());
  passes.addPass(createHoistAllocasPass());
  passes.addPass(createLowerExecPass());
  passes.addPass(createExpandMathPass());
  passes.addPass(createExpandBf16Pass());
  addSimplifyingPasses(passes);
  addConversionPasses(passes);
  passes.addPass(createCheckLlvmPass());
}

namespace {
/// A pipeline registered without options rejects them without an error message.
struct NoOptions : PassPipelineOptions<NoOptions> {};
} // namespace

void registerCodegenPasses() {
  registerCpuCodegenPasses();
  PassPipelineRegistration<NoOptions>(
      "mica-loops-to-llvm", "stage `loops` -> `llvm`",
      [](OpPassManager &passes, const NoOptions &) { addLoopsToLlvmPasses(passes); });
}

} // namespace mica::cpu
