//===- FuseCasts.cpp - an op rounds its own result ------------------------===//

#include "passes/Passes.h"
#include "passes/fusion/Driver.h"

namespace mica {
#define GEN_PASS_DEF_FUSECASTS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// Whether all uses of `value` are casts to `type`.
static bool isOnlyCastTo(Value value, Type type) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    return isa<CastOp>(user) && user->getResult(0).getType() == type;
  });
}

/// Whether the op that produces `value` can round it to `element` itself. A gated matmul, which
/// computes two groups at a time, could round to integers as well, but that is left to a separate
/// loop over rows, whose cost `bench --profile` reports as `quantize`.
static bool canRound(Value value, Type element) {
  auto producer = value.getDefiningOp<RoundsResult>();
  return producer && producer.getRoundedResult() == value &&
         (!isQuantized(element) || producer.canQuantizeResult());
}

namespace {
// cast(op(...)) => op(...) with the type of the cast
struct ProducerRoundsItsResult : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CastOp cast, PatternRewriter &rewriter) const override {
    Value wide = cast.getX();
    if (!canRound(wide, cast.getType().getElementType()))
      return rewriter.notifyMatchFailure(cast, "the producer cannot round its result");
    if (!isOnlyCastTo(wide, cast.getType()))
      return rewriter.notifyMatchFailure(cast, "the wide result has another use");
    rewriter.modifyOpInPlace(wide.getDefiningOp(), [&] { wide.setType(cast.getType()); });
    for (Operation *user : llvm::make_early_inc_range(wide.getUsers()))
      rewriter.replaceOp(user, wide);
    return success();
  }
};

// cast(merge_heads(x)) => merge_heads(cast(x))
struct HeadsAreRoundedBeforeTheyAreMerged : OpRewritePattern<CastOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(CastOp cast, PatternRewriter &rewriter) const override {
    auto merge = cast.getX().getDefiningOp<MergeHeadsOp>();
    if (!merge)
      return rewriter.notifyMatchFailure(cast, "the producer does not merge heads");
    if (isQuantized(cast.getType().getElementType()))
      return rewriter.notifyMatchFailure(cast, "groups of integers may reach across heads");
    if (!merge->hasOneUse())
      return rewriter.notifyMatchFailure(cast, "the merged heads have another use");
    auto type = merge.getX().getType().clone(cast.getType().getElementType());
    Value narrow = CastOp::create(rewriter, cast.getLoc(), type, merge.getX());
    rewriter.replaceOpWithNewOp<MergeHeadsOp>(cast, cast.getType(), narrow);
    rewriter.eraseOp(merge);
    return success();
  }
};

struct FuseCasts : mica::impl::FuseCastsBase<FuseCasts> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ProducerRoundsItsResult, HeadsAreRoundedBeforeTheyAreMerged>(&getContext());
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
