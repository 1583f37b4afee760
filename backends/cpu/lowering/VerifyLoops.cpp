//===- VerifyLoops.cpp - verify stage loops -------------------------------===//

#include "backends/cpu/lowering/CachesInPlace.h"
#include "passes/verify/Calls.h"
#include "passes/verify/Checks.h"

namespace mica::cpu {
#define GEN_PASS_DEF_VERIFYLOOPS
#include "backends/cpu/lowering/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

static LogicalResult verifyNoTensor(Operation *op) {
  bool buffers = llvm::none_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
  for (Region &region : op->getRegions())
    for (Block &block : region)
      buffers &= llvm::none_of(block.getArgumentTypes(), llvm::IsaPred<TensorType>);
  return buffers ? success() : op->emitOpError("has a tensor, but stage `loops` works on buffers");
}

/// Unused functions may allocate, because memory is only planned for reachable functions.
static LogicalResult verifyNoAllocation(func::FuncOp function, const SymbolUserMap &users) {
  if (function.isPrivate() && users.useEmpty(function))
    return success();
  WalkResult result = function.walk([](Operation *op) -> WalkResult {
    if (isa<memref::AllocOp, memref::ReallocOp>(op))
      return op->emitOpError("allocates memory while the model runs: run cpu-plan-buffers");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult verifyBuffers(ModuleOp module) {
  WalkResult result = module.walk<WalkOrder::PreOrder>(
      [](Operation *op) -> WalkResult { return verifyNoTensor(op); });
  if (result.wasInterrupted())
    return failure();
  SymbolTableCollection symbols;
  SymbolUserMap users(symbols, module);
  return failure(llvm::any_of(module.getOps<func::FuncOp>(), [&](func::FuncOp function) {
    return failed(verifyNoAllocation(function, users));
  }));
}

namespace {
struct VerifyLoopsPass : mica::cpu::impl::VerifyLoopsBase<VerifyLoopsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    if (failed(
            verifyLegalOps(module,
                           {"exec", "func", "scf", "arith", "math", "memref", "vector", "x86vector",
                            "amx", "mica.weight", "mica.equalize", "llvm.call_intrinsic"},
                           Stage::Loops)) ||
        failed(verifyBuffers(module)) || failed(verifyNoRecursion(module)) ||
        failed(verifyCachesInPlace(module)))
      signalPassFailure();
  }
};
} // namespace
