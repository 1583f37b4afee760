//===- FuseResidual.cpp - products add the residual stream themselves ---------===//

#include "passes/Fusion/Driver.h"
#include "passes/Passes.h"

namespace mica {
#define GEN_PASS_DEF_FUSERESIDUAL
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// Whether a residual can be added to the op that makes `value`: a product that has none and no
/// other use.
static bool takesResidual(Value value) {
  return value.hasOneUse() &&
         TypeSwitch<Operation *, bool>(value.getDefiningOp())
             .Case<LinearOp, MoeExpertsOp>([](auto op) { return !op.getResidual(); })
             .Default(false);
}

namespace {
// add(r, product(...)) => product(...) residual(r)
struct ProductAddsItsResidual : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add, PatternRewriter &rewriter) const override {
    Value residual = add.getLhs(), product = add.getRhs();
    if (!product.getDefiningOp() || !takesResidual(product))
      std::swap(residual, product);
    if (!product.getDefiningOp() || !takesResidual(product))
      return rewriter.notifyMatchFailure(add,
                                         "no term is a product of a single use without residual");
    if (residual == product)
      return rewriter.notifyMatchFailure(add, "both terms are the same");
    if (add->hasOneUse() && isa<AddOp>(*add->user_begin()) && residual.getDefiningOp() &&
        takesResidual(residual))
      return rewriter.notifyMatchFailure(
          add, "the sum of two products is added to the residual one by one");
    Operation *fused = rewriter.clone(*product.getDefiningOp());
    fused->setLoc(rewriter.getFusedLoc({product.getLoc(), add.getLoc()}));
    TypeSwitch<Operation *>(fused).Case<LinearOp, MoeExpertsOp>(
        [&](auto op) { op.getResidualMutable().assign(residual); });
    rewriter.replaceOp(add, fused);
    rewriter.eraseOp(product.getDefiningOp());
    return success();
  }
};

// add(r, add(a, b)) => add(add(r, a), b), where a and b are products.
//
// The experts and a shared expert are summed before they meet the residual stream r. Adding one
// after the other rounds (r + a) + b instead of r + (a + b): a difference of one rounding of f32
// per layer, within 1e-5 relative.
struct ResidualMeetsProductsOneByOne : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add, PatternRewriter &rewriter) const override {
    Value residual = add.getLhs();
    auto sum = add.getRhs().getDefiningOp<AddOp>();
    if (!isSumOfProducts(sum)) {
      residual = add.getRhs();
      sum = add.getLhs().getDefiningOp<AddOp>();
    }
    if (!isSumOfProducts(sum))
      return rewriter.notifyMatchFailure(add, "no term is a sum of two products of a single use");
    Location loc = rewriter.getFusedLoc({sum.getLoc(), add.getLoc()});
    Value first = AddOp::create(rewriter, loc, residual, sum.getLhs());
    rewriter.replaceOpWithNewOp<AddOp>(add, first, sum.getRhs());
    rewriter.eraseOp(sum);
    return success();
  }

private:
  static bool isSumOfProducts(AddOp sum) {
    return sum && sum->hasOneUse() && llvm::all_of(sum->getOperands(), [](Value term) {
             return term.getDefiningOp() && takesResidual(term);
           });
  }
};

struct FuseResidual : mica::impl::FuseResidualBase<FuseResidual> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ProductAddsItsResidual>(&getContext());
    patterns.add<ResidualMeetsProductsOneByOne>(&getContext(), /*benefit=*/2);
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
