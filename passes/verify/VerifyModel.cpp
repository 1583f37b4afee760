//===- VerifyModel.cpp - verify stage model -------------------------------===//

#include "passes/support/CacheKinds.h"
#include "passes/verify/Checks.h"

namespace mica {
#define GEN_PASS_DEF_VERIFYMODEL
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static LogicalResult verifyNothingIsFused(ModuleOp module) {
  WalkResult result = module.walk([](Operation *op) -> WalkResult {
    if (op->hasTrait<MadeByFusion>())
      return op->emitOpError("is created by fusion and not allowed at stage `model`");
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// The rope of the keys that `attention` reads, if they are written in the same function.
static RopeOp findRopeOfKeys(AttentionOp attention) {
  Value cache = findCache(attention.getK());
  auto update = cache ? cache.getDefiningOp<UpdatesState>() : UpdatesState();
  if (!update)
    return {};
  for (Value rows : update.getTokenRows())
    if (auto rope = rows.getDefiningOp<RopeOp>())
      return rope;
  return {};
}

/// The product of a query and a key depends on their distance only if both are rotated in the same
/// way.
static LogicalResult verifyRopesAgree(ModuleOp module) {
  WalkResult result = module.walk([](AttentionOp attention) -> WalkResult {
    auto queries = attention.getQ().getDefiningOp<RopeOp>();
    RopeOp keys = findRopeOfKeys(attention);
    if (!queries || !keys ||
        (queries.getPairing() == keys.getPairing() && queries.getTheta() == keys.getTheta() &&
         queries.getRotaryWidth() == keys.getRotaryWidth() &&
         queries.getScalingAttr() == keys.getScalingAttr() &&
         queries.getLengths() == keys.getLengths()))
      return WalkResult::advance();
    InFlightDiagnostic diagnostic =
        attention.emitOpError("compares queries and keys that mica.rope rotates differently: use "
                              "the same pairing, theta, "
                              "rotary_dim, scaling and lengths for both");
    diagnostic.attachNote(queries.getLoc()) << "the queries are rotated here";
    diagnostic.attachNote(keys.getLoc()) << "the keys are rotated here";
    return diagnostic;
  });
  return failure(result.wasInterrupted());
}

namespace {
struct VerifyModel : mica::impl::VerifyModelBase<VerifyModel> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    if (failed(verifyLegalOps(module, {"mica", "func", "arith"}, Stage::Model)) ||
        failed(verifyNothingIsFused(module)) || failed(verifyRopesAgree(module)) ||
        failed(verifyStep(module)))
      signalPassFailure();
  }
};
} // namespace
