//===- ExpandBf16.cpp - bf16 conversions by integer instructions ----------===//

#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/target/CpuDialect.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_EXPANDBF16PASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

/// `type`, a scalar or vector, with another element type.
Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(element);
  return element;
}

/// Creates integer ops with the shape of the result of one op.
class Integers {
public:
  Integers(PatternRewriter &rewriter, Operation *op)
      : rewriter(rewriter), loc(op->getLoc()), shape(op->getResult(0).getType()) {}

  Type i16() const { return withElement(shape, rewriter.getI16Type()); }
  Type i32() const { return withElement(shape, rewriter.getI32Type()); }
  Value constant(int32_t value) const {
    TypedAttr element = rewriter.getI32IntegerAttr(value);
    if (auto vector = dyn_cast<VectorType>(i32()))
      element = DenseElementsAttr::get(vector, Attribute(element));
    return arith::ConstantOp::create(rewriter, loc, element);
  }
  template <typename Op, typename... Operands> Value make(Operands... operands) const {
    return Op::create(rewriter, loc, operands...);
  }

private:
  PatternRewriter &rewriter;
  Location loc;
  Type shape;
};

/// extf bf16 => shift left by 16.
struct ExpandExtension : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ExtFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isBF16() || !getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not from bf16 to f32");
    Integers ints(rewriter, op);
    Value bits = ints.make<arith::BitcastOp>(ints.i16(), op.getIn());
    Value wide = ints.make<arith::ExtUIOp>(ints.i32(), bits);
    Value shifted = ints.make<arith::ShLIOp>(wide, ints.constant(16));
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), shifted);
    return success();
  }
};

/// truncf to bf16 => (bits + 0x7fff + bit 16) >> 16, rounded to nearest even; NaN becomes a quiet
/// NaN. Uses only integers, because LLVM does not support select of bf16 vectors on these targets.
struct ExpandTruncation : OpRewritePattern<arith::TruncFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::TruncFOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getIn()).isF32() || !getElementTypeOrSelf(op.getType()).isBF16())
      return rewriter.notifyMatchFailure(op, "not from f32 to bf16");
    Integers ints(rewriter, op);
    Value bits = ints.make<arith::BitcastOp>(ints.i32(), op.getIn());
    Value high = ints.make<arith::ShRUIOp>(bits, ints.constant(16));
    Value odd = ints.make<arith::AndIOp>(high, ints.constant(1));
    Value bias = ints.make<arith::AddIOp>(odd, ints.constant(0x7fff));
    Value sum = ints.make<arith::AddIOp>(bits, bias);
    Value rounded = ints.make<arith::ShRUIOp>(sum, ints.constant(16));
    Value isNan = ints.make<arith::CmpFOp>(arith::CmpFPredicate::UNO, op.getIn(), op.getIn());
    Value chosen = ints.make<arith::SelectOp>(isNan, ints.constant(0x7fc0), rounded);
    Value narrow = ints.make<arith::TruncIOp>(ints.i16(), chosen);
    rewriter.replaceOpWithNewOp<arith::BitcastOp>(op, op.getType(), narrow);
    return success();
  }
};

struct ExpandBf16 : mica::cpu::impl::ExpandBf16PassBase<ExpandBf16> {
  void runOnOperation() override {
    if (mica::cpu::targetOf(getOperation()).bf16Dot)
      return;
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandExtension, ExpandTruncation>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
        return WalkResult::advance();
      Type from = getElementTypeOrSelf(op->getOperand(0)),
           to = getElementTypeOrSelf(op->getResult(0));
      if (from.isBF16() || to.isBF16())
        return op->emitError("converts bf16 in a way that this target does not support");
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
