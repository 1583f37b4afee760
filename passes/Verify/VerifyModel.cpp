//===- VerifyModel.cpp - border of stage model ---------------------------------===//

#include "passes/Verify/Checks.h"

namespace mica {
#define GEN_PASS_DEF_VERIFYMODEL
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static LogicalResult verifyNothingIsFused(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) -> WalkResult {
    if (isa<SplitOp, RopeTableOp, QkvAppendOp, GatedLinearOp>(op))
      return op->emitOpError("is made by fusion and not allowed at stage `model`");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyModel : mica::impl::VerifyModelBase<VerifyModel> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    if (failed(verifyAlive(module, {"mica", "func", "arith"}, "model")) ||
        failed(verifyNothingIsFused(module)) || failed(verifyStep(module)))
      signalPassFailure();
  }
};
} // namespace
