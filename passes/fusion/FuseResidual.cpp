//===- FuseResidual.cpp - matmuls add the residual stream -----------------===//

#include "passes/Passes.h"
#include "passes/fusion/Driver.h"

namespace mica {
#define GEN_PASS_DEF_FUSERESIDUAL
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// The residual of the matmul that produces `value`, null if it has none; nullopt if `value` is not
/// produced by a matmul or has several uses.
static std::optional<Value> getResidualOf(Value value) {
  if (!value.hasOneUse())
    return std::nullopt;
  auto product = value.getDefiningOp<AddsResidual>();
  return product ? std::optional(product.getResidual()) : std::nullopt;
}

static bool isProductWithoutResidual(Value value) {
  std::optional<Value> residual = getResidualOf(value);
  return residual && !*residual;
}

/// Whether `value` is produced by a chain of matmuls, linked by residuals, whose first one has
/// none.
static bool isChainOfProducts(Value value) {
  std::optional<Value> residual = getResidualOf(value);
  return residual && (!*residual || isChainOfProducts(*residual));
}

/// The terms of `add`: first one for which `isProduct` holds (the right one if it holds for both),
/// then the other; nullopt if it holds for neither.
static std::optional<std::pair<Value, Value>>
findProduct(AddOp add, llvm::function_ref<bool(Value)> isProduct) {
  Value lhs = add.getLhs(), rhs = add.getRhs();
  if (isProduct(rhs))
    return std::pair(rhs, lhs);
  if (isProduct(lhs))
    return std::pair(lhs, rhs);
  return std::nullopt;
}

/// Replaces `add` by a copy of the matmul with `residual`.
static void replaceByProduct(AddOp add, Value product, Value residual, PatternRewriter &rewriter) {
  Operation *fused = rewriter.clone(*product.getDefiningOp());
  fused->setLoc(rewriter.getFusedLoc({product.getLoc(), add.getLoc()}));
  cast<AddsResidual>(fused).getResidualMutable().assign(residual);
  rewriter.replaceOp(add, fused);
  rewriter.eraseOp(product.getDefiningOp());
}

namespace {
// add(r, product(...)) => product(...) residual(r)
struct ProductAddsItsResidual : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add, PatternRewriter &rewriter) const override {
    auto terms = findProduct(add, isProductWithoutResidual);
    if (!terms)
      return rewriter.notifyMatchFailure(
          add, "no term is a matmul with a single use and without a residual");
    auto [product, residual] = *terms;
    replaceByProduct(add, product, residual, rewriter);
    return success();
  }
};

// add(r, b residual(a)) => b residual(add(r, a)), where a is a matmul that can add r.
//
// The experts a and a shared expert b are summed before they are added to the residual stream r.
// This computes (r + a) + b instead of r + (a + b): a difference of one f32 rounding per layer,
// within 1e-5 relative.
struct AddResidualToFirstProduct : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AddOp add, PatternRewriter &rewriter) const override {
    auto terms = findProduct(add, isChainOfProducts);
    if (!terms)
      return rewriter.notifyMatchFailure(add, "no term is a chain of matmuls with single uses");
    auto [product, residual] = *terms;
    if (isProductWithoutResidual(product))
      return rewriter.notifyMatchFailure(add, "the product adds the residual itself");
    Value first = AddOp::create(rewriter, add.getLoc(), residual, *getResidualOf(product));
    replaceByProduct(add, product, first, rewriter);
    return success();
  }
};

struct FuseResidual : mica::impl::FuseResidualBase<FuseResidual> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ProductAddsItsResidual, AddResidualToFirstProduct>(&getContext());
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
