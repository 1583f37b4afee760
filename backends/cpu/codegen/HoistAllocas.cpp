//===- HoistAllocas.cpp - stack buffers at their function's entry ---------===//

#include "backends/cpu/codegen/Passes.h"
#include "backends/runtime/abi/KernelStack.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_HOISTALLOCASPASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

struct HoistAllocas : mica::cpu::impl::HoistAllocasPassBase<HoistAllocas> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([this](Operation *op) -> WalkResult {
      if (isa<memref::AllocOp, memref::ReallocOp>(op))
        return op->emitError(
            "allocates memory while the model runs: memory must be planned before this stage");
      auto alloca = dyn_cast<memref::AllocaOp>(op);
      return alloca ? hoist(alloca) : success();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    for (auto [function, bytes] : stacks)
      if (bytes > mica::rt::kernelStackBytes) {
        function->emitError("uses ")
            << bytes << " bytes of stack; the limit is " << mica::rt::kernelStackBytes;
        signalPassFailure();
      }
  }

  LogicalResult hoist(memref::AllocaOp alloca) {
    if (!alloca.getType().hasStaticShape() || !alloca->getOperands().empty())
      return alloca.emitError("allocates stack memory of a size that is not constant");
    auto function = alloca->getParentOfType<FunctionOpInterface>();
    if (!function)
      return alloca.emitError("is not in a function");
    MemRefType type = alloca.getType();
    stacks[function] +=
        type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8) + kLine;
    alloca->moveBefore(&function.getFunctionBody().front(),
                       function.getFunctionBody().front().begin());
    return success();
  }

  static constexpr uint64_t kLine = 64; ///< padding for alignment
  llvm::MapVector<Operation *, uint64_t> stacks;
};

} // namespace
