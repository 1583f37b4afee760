//===- VerifyKernels.cpp - verify stage kernels ---------------------------===//

#include "backends/cpu/dispatch/Passes.h"
#include "passes/support/Weights.h"
#include "passes/verify/Checks.h"

namespace mica::cpu {
#define GEN_PASS_DEF_VERIFYKERNELS
#include "backends/cpu/dispatch/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

static LogicalResult verifyProduct(MultipliesRows product) {
  for (Value matrix : allMatricesOf(product))
    if (!isa_and_nonnull<PackedLayoutAttr>(cast<RankedTensorType>(matrix.getType()).getEncoding()))
      return product->emitOpError("has a weight without layout: run cpu-assign-layouts");
  auto selects = dyn_cast<SelectsKernel>(product.getOperation());
  if (selects && !selects.getKernel())
    return product->emitOpError("has no kernel: run cpu-select-kernels");
  return success();
}

static LogicalResult verifyAttention(AttentionOp attention) {
  if (!attention.getTiling())
    return attention.emitOpError("has no tiling: run cpu-select-kernels");
  return success();
}

static LogicalResult verifyWeight(WeightOp weight) {
  if (!weight.getOffset() || !weight.getBytes())
    return weight.emitOpError("has no offset: run cpu-assign-layouts");
  return success();
}

static LogicalResult verifyCacheLayouts(Operation *op) {
  auto hasLayout = [](Type type) {
    auto state = dyn_cast<SequenceState>(type);
    return !state || state.getPhysicalType();
  };
  bool complete = llvm::all_of(op->getResultTypes(), hasLayout);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      complete &= llvm::all_of(block.getArgumentTypes(), hasLayout);
  return complete ? success()
                  : op->emitOpError("has a cache without layout: run cpu-assign-layouts");
}

static LogicalResult verifyImplementations(ModuleOp module) {
  WalkResult result = module.walk<WalkOrder::PreOrder>([](Operation *op) -> WalkResult {
    LogicalResult chosen =
        TypeSwitch<Operation *, LogicalResult>(op)
            .Case([](MultipliesRows product) { return verifyProduct(product); })
            .Case([](AttentionOp attention) { return verifyAttention(attention); })
            .Case([](WeightOp weight) { return verifyWeight(weight); })
            .Default(success());
    return failure(failed(chosen) || failed(verifyCacheLayouts(op)));
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyKernels : mica::cpu::impl::VerifyKernelsBase<VerifyKernels> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    if (failed(verifyLegalOps(module, {"mica", "func", "arith", "scf"}, Stage::Kernels)) ||
        failed(verifyImplementations(module)) || failed(verifyStep(module)))
      signalPassFailure();
  }
};
} // namespace
