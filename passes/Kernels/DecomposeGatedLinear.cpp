//===- DecomposeGatedLinear.cpp - a gated product by oneDNN --------------------===//

#include "passes/Fusion/Driver.h"
#include "passes/Passes.h"

namespace mica {
#define GEN_PASS_DEF_DECOMPOSEGATEDLINEAR
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
// gated_linear kernel(onednn) => glu(linear kernel(onednn))
struct OneDnnLeavesTheGateToGlu : OpRewritePattern<GatedLinearOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(GatedLinearOp gated, PatternRewriter &rewriter) const override {
    if (gated.getKernel() != KernelKind::OneDnn)
      return rewriter.notifyMatchFailure(gated, "the product is not computed by oneDNN");
    if (isQuantized(gated.getWeight().getType().getElementType()))
      return rewriter.notifyMatchFailure(gated, "sums of integers need a kernel after them anyway");
    auto type = RankedTensorType::get(
        {gated.getType().getDimSize(0), gated.getWeight().getType().getDimSize(0)},
        rewriter.getF32Type());
    Value product = LinearOp::create(rewriter, gated.getLoc(), type, gated.getX(),
                                     gated.getWeight(), /*bias=*/Value(),
                                     /*residual=*/Value(), gated.getKernelAttr());
    rewriter.replaceOpWithNewOp<GluOp>(gated, gated.getType(), product, gated.getActivationAttr());
    return success();
  }
};

struct DecomposeGatedLinear : mica::impl::DecomposeGatedLinearBase<DecomposeGatedLinear> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<OneDnnLeavesTheGateToGlu>(&getContext());
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
