//===- ExpandBf16.cpp - bf16 conversions by integer instructions
//---------------------------------===//

#include "backends/cpu/codegen/Passes.h"

#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_EXPANDBF16PASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

struct ExpandBf16 : mica::cpu::impl::ExpandBf16PassBase<ExpandBf16> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
        return WalkResult::advance();
      Type from = getElementTypeOrSelf(op->getOperand(0)),
           to = getElementTypeOrSelf(op->getResult(0));
      if (from.isBF16() || to.isBF16())
        return op->emitError("converts bf16 in a way that this target cannot compute");
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
