//===- ExpandMath.cpp - libm functions as polynomials ---------------------===//

#include "backends/cpu/codegen/Passes.h"

#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_EXPANDMATHPASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

/// Whether `op` is lowered to instructions and not to a call: what the others become,
/// cpu-check-llvm rejects (becomesLibraryCall).
bool isComputedByInstructions(Operation *op) {
  return isa<math::AbsFOp, math::AbsIOp, math::CeilOp, math::FloorOp, math::TruncOp,
             math::RoundEvenOp, math::FmaOp, math::SqrtOp, math::CopySignOp,
             math::CountLeadingZerosOp, math::CountTrailingZerosOp, math::CtPopOp>(op);
}

/// Creates f32 arithmetic with the shape of `type`, a scalar or vector.
class Arithmetic {
public:
  Arithmetic(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc), type(type) {}

  Value constant(float value) const { return splat(builder.getF32FloatAttr(value), type); }
  Value integer(int32_t value) const {
    return splat(builder.getI32IntegerAttr(value), integerType());
  }
  Value fma(Value a, Value b, Value c) const { return math::FmaOp::create(builder, loc, a, b, c); }
  Value mul(Value a, Value b) const { return arith::MulFOp::create(builder, loc, a, b); }
  Value roundToEven(Value a) const { return math::RoundEvenOp::create(builder, loc, a); }
  Value toInteger(Value a) const { return arith::FPToSIOp::create(builder, loc, integerType(), a); }
  Value addI(Value a, int32_t b) const {
    return arith::AddIOp::create(builder, loc, a, integer(b));
  }
  Value negate(Value a) const { return arith::NegFOp::create(builder, loc, a); }
  Value select(Value condition, Value a, Value b) const {
    return arith::SelectOp::create(builder, loc, condition, a, b);
  }
  /// Whether `a` has the bit with value `bit` set.
  Value hasBit(Value a, int32_t bit) const {
    Value masked = arith::AndIOp::create(builder, loc, a, integer(bit));
    return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, masked, integer(0));
  }
  /// Evaluates a polynomial with Horner's method; the highest coefficient is first.
  Value polynomial(Value x, ArrayRef<float> coefficients) const {
    Value sum = constant(coefficients.front());
    for (float coefficient : coefficients.drop_front())
      sum = fma(sum, x, constant(coefficient));
    return sum;
  }

private:
  Type integerType() const {
    if (auto vector = dyn_cast<VectorType>(type))
      return vector.clone(builder.getI32Type());
    return builder.getI32Type();
  }
  Value splat(TypedAttr value, Type ofType) const {
    if (auto vector = dyn_cast<VectorType>(ofType))
      return arith::ConstantOp::create(builder, loc,
                                       DenseElementsAttr::get(vector, Attribute(value)));
    return arith::ConstantOp::create(builder, loc, value);
  }

  OpBuilder &builder;
  Location loc;
  Type type;
};

/// sin(x), or cos(x) = sin(x + pi/2). With q = round(2x/pi) and r = x - q pi/2 in [-pi/4, pi/4], q
/// mod 4 selects sin r or cos r and the sign. pi/2 = high + middle + low (Cody and Waite); every
/// step is one fused multiply-add. The polynomials are those of Cephes' sinf and cosf (Moshier,
/// Methods and Programs for Mathematical Functions).
Value buildSine(const Arithmetic &a, Value x, bool cosine) {
  constexpr float twoOverPi = 0x1.45f306p-1f, high = 0x1.921fb6p+0f, middle = -0x1.777a5cp-25f,
                  low = -0x1.ee59dap-50f;
  Value q = a.roundToEven(a.mul(x, a.constant(twoOverPi)));
  Value r = a.fma(q, a.constant(-high), x);
  r = a.fma(q, a.constant(-middle), r);
  r = a.fma(q, a.constant(-low), r);
  Value quarter = a.addI(a.toInteger(q), cosine ? 1 : 0);

  Value square = a.mul(r, r);
  Value sine = a.polynomial(square, {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f});
  sine = a.fma(a.mul(sine, square), r, r);
  Value cosineOfR = a.polynomial(
      square, {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f, -0.5f, 1.0f});
  Value result = a.select(a.hasBit(quarter, 1), cosineOfR, sine);
  return a.select(a.hasBit(quarter, 2), a.negate(result), result);
}

/// sin x => polynomials; cos x likewise.
template <typename Op, bool cosine> struct ExpandSine : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Arithmetic arithmetic(rewriter, op.getLoc(), op.getType());
    rewriter.replaceOp(op, buildSine(arithmetic, op.getOperand(), cosine));
    return success();
  }
};

/// rsqrt x => 1 / sqrt x.
struct ExpandRsqrt : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RsqrtOp op, PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "not f32");
    Value one = Arithmetic(rewriter, op.getLoc(), op.getType()).constant(1.0f);
    Value root = math::SqrtOp::create(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOpWithNewOp<arith::DivFOp>(op, one, root);
    return success();
  }
};

struct ExpandMath : mica::cpu::impl::ExpandMathPassBase<ExpandMath> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandSine<math::SinOp, false>, ExpandSine<math::CosOp, true>, ExpandRsqrt>(
        &getContext());
    auto approximated = [](StringRef name) {
      return llvm::is_contained({math::ExpOp::getOperationName(), math::TanhOp::getOperationName(),
                                 math::ErfOp::getOperationName(), math::LogOp::getOperationName(),
                                 math::Log2Op::getOperationName(),
                                 math::Log1pOp::getOperationName(),
                                 math::ExpM1Op::getOperationName()},
                                name);
    };
    populateMathPolynomialApproximationPatterns(patterns, approximated);
    math::populateExpansionPatterns(patterns, {"exp2"});
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      if (isa_and_nonnull<math::MathDialect>(op->getDialect()) && !isComputedByInstructions(op))
        return op->emitError(
            "would call a function of libm, and no polynomial for it is known here");
      if (isa<arith::RemFOp>(op))
        return op->emitError("would call fmod of libm");
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
