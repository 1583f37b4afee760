//===- VerifyFused.cpp - verify stage fused -------------------------------===//

#include "passes/verify/Checks.h"

namespace mica {
#define GEN_PASS_DEF_VERIFYFUSED
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static LogicalResult verifyNoCacheIsRepeated(ModuleOp module) {
  WalkResult result = module.walk([](RepeatKvOp repeat) -> WalkResult {
    if (repeat.getX().getDefiningOp<ReadsState>())
      return repeat.emitOpError(
          "of a cache is left and would copy it; attention must read the same number of repeated "
          "keys and values");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyFused : mica::impl::VerifyFusedBase<VerifyFused> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    if (failed(verifyLegalOps(module, {"mica", "func", "arith"}, Stage::Fused)) ||
        failed(verifyNoCacheIsRepeated(module)) || failed(verifyStep(module)))
      signalPassFailure();
  }
};
} // namespace
