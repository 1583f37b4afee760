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

/// What no op says: how long the model's context is.
static LogicalResult verifyDescription(ModuleOp module) {
  Attribute model = module->getAttr("mica.model");
  if (!model)
    return success();
  auto entries = dyn_cast<DictionaryAttr>(model);
  auto positions = entries ? entries.getAs<IntegerAttr>("max_positions") : IntegerAttr();
  if (!positions || !positions.getType().isSignlessInteger(64) || positions.getInt() < 1)
    return module.emitOpError("has a mica.model without a number of positions: give it an entry "
                              "max_positions = N : i64 of at least 1");
  return success();
}

namespace {
struct VerifyModel : mica::impl::VerifyModelBase<VerifyModel> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    markAllAnalysesPreserved();
    if (failed(verifyAlive(module, {"mica", "func", "arith"}, "model")) ||
        failed(verifyDescription(module)) || failed(verifyNothingIsFused(module)) ||
        failed(verifyStep(module)))
      signalPassFailure();
  }
};
} // namespace
