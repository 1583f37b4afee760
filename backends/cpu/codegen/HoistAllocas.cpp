//===- HoistAllocas.cpp - stack buffers at their function's entry ---------===//

#include "backends/cpu/codegen/Passes.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_HOISTALLOCASPASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

struct HoistAllocas : mica::cpu::impl::HoistAllocasPassBase<HoistAllocas> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      if (isa<memref::AllocOp, memref::ReallocOp>(op))
        return op->emitError(
            "allocates memory while the model runs: memory must be planned before this stage");
      auto alloca = dyn_cast<memref::AllocaOp>(op);
      return alloca ? hoist(alloca) : success();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult hoist(memref::AllocaOp alloca) {
    if (!alloca.getType().hasStaticShape() || !alloca->getOperands().empty())
      return alloca.emitError("takes stack of a size that is not constant");
    auto function = alloca->getParentOfType<FunctionOpInterface>();
    if (!function)
      return alloca.emitError("stands in no function");
    alloca->moveBefore(&function.getFunctionBody().front(),
                       function.getFunctionBody().front().begin());
    return success();
  }
};

} // namespace
