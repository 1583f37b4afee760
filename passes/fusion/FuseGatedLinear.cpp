//===- FuseGatedLinear.cpp - gate and up projections in one matmul --------===//

#include "passes/Passes.h"
#include "passes/fusion/Driver.h"
#include "passes/support/Weights.h"

namespace mica {
#define GEN_PASS_DEF_FUSEGATEDLINEAR
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// The type of gate and up in alternating blocks of rows, each padded to whole blocks.
static RankedTensorType getInterleavedType(RankedTensorType gate) {
  SmallVector<int64_t> shape(gate.getShape());
  int64_t &rows = shape[shape.size() - 2];
  rows = 2 * roundUp(rows, kBlockColumns);
  return RankedTensorType::get(shape, gate.getElementType());
}

/// Whether `linear` is a matmul with a single use and without bias, residual or assigned kernel.
static bool isPlain(LinearOp linear) {
  return linear && linear->hasOneUse() && !linear.getBias() && !linear.getResidual() &&
         !linear.getKernel();
}

namespace {
// mul(activation(linear(x, g)), linear(x, u)) => gated_linear(x, interleave(g, u))
struct GateAndUpShareOneProduct : OpRewritePattern<MulOp> {
  GateAndUpShareOneProduct(MLIRContext *context, WeightComposer &weights)
      : OpRewritePattern(context), weights(weights) {}

  LogicalResult matchAndRewrite(MulOp mul, PatternRewriter &rewriter) const override {
    Value activated = mul.getLhs(), other = mul.getRhs();
    if (!activated.getDefiningOp<AppliesActivation>())
      std::swap(activated, other);
    auto activation = activated.getDefiningOp<AppliesActivation>();
    if (!activation)
      return rewriter.notifyMatchFailure(mul, "no factor is an activation");
    if (!activation->hasOneUse())
      return rewriter.notifyMatchFailure(mul, "the activation has another use");
    auto gate = activation->getOperand(0).getDefiningOp<LinearOp>();
    auto up = other.getDefiningOp<LinearOp>();
    if (!isPlain(gate) || !isPlain(up))
      return rewriter.notifyMatchFailure(mul, "gate or up is not a plain matmul with a single use");
    if (gate.getX() != up.getX())
      return rewriter.notifyMatchFailure(mul, "gate and up are matmuls of different rows");
    if (gate.getWeight().getType() != up.getWeight().getType())
      return rewriter.notifyMatchFailure(mul, "gate and up have different types");
    SmallVector<Value> parts{gate.getWeight(), up.getWeight()};
    if (StringRef reason = weights.rejectionReason(parts, Composition::Interleave); !reason.empty())
      return rewriter.notifyMatchFailure(mul, reason);

    auto type = getInterleavedType(gate.getWeight().getType());
    Value weight = weights.compose(rewriter, parts, Composition::Interleave, type);
    Location loc =
        rewriter.getFusedLoc({gate.getLoc(), up.getLoc(), activation->getLoc(), mul.getLoc()});
    auto kind = ActivationAttr::get(getContext(), activation.getActivation());
    auto fused = GatedLinearOp::create(rewriter, loc, mul.getType(), gate.getX(), weight, kind,
                                       KernelKindAttr());
    rewriter.replaceOp(mul, fused);
    rewriter.eraseOp(activation);
    rewriter.eraseOp(gate);
    rewriter.eraseOp(up);
    weights.eraseArguments(rewriter, parts);
    return success();
  }

  WeightComposer &weights;
};

// moe_experts(x, g, up(u)) => moe_experts(x, interleave(g, u)); moe_gate_up likewise
template <typename Op> struct ExpertsShareOneProduct : OpRewritePattern<Op> {
  ExpertsShareOneProduct(MLIRContext *context, WeightComposer &weights)
      : OpRewritePattern<Op>(context), weights(weights) {}

  LogicalResult matchAndRewrite(Op experts, PatternRewriter &rewriter) const override {
    if (!experts.getUp())
      return rewriter.notifyMatchFailure(experts, "gate and up are one already");
    if (experts.getGate().getType() != experts.getUp().getType())
      return rewriter.notifyMatchFailure(experts, "gate and up have different types");
    SmallVector<Value> parts{experts.getGate(), experts.getUp()};
    if (StringRef reason = weights.rejectionReason(parts, Composition::StackInterleave);
        !reason.empty())
      return rewriter.notifyMatchFailure(experts, reason);
    auto type = getInterleavedType(experts.getGate().getType());
    Value weight = weights.compose(rewriter, parts, Composition::StackInterleave, type);
    rewriter.modifyOpInPlace(experts, [&] {
      experts.getGateMutable().assign(weight);
      experts.getUpMutable().clear();
    });
    weights.eraseArguments(rewriter, parts);
    return success();
  }

  WeightComposer &weights;
};

struct FuseGatedLinear : mica::impl::FuseGatedLinearBase<FuseGatedLinear> {
  void runOnOperation() override {
    WeightComposer weights(getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add<GateAndUpShareOneProduct, ExpertsShareOneProduct<MoeExpertsOp>,
                 ExpertsShareOneProduct<MoeGateUpOp>>(&getContext(), weights);
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      return signalPassFailure();
    weights.eraseUnusedWeights(getOperation());
  }
};
} // namespace
