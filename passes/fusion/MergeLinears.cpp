//===- MergeLinears.cpp - matmuls of the same rows become one -------------===//

#include "passes/Passes.h"
#include "passes/fusion/Driver.h"
#include "passes/support/Weights.h"

namespace mica {
#define GEN_PASS_DEF_MERGELINEARS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// [N1 + N2 + ..., K] for matrices, [N1 + N2 + ...] for biases.
static RankedTensorType getJoinedType(ValueRange weights) {
  auto first = cast<RankedTensorType>(weights.front().getType());
  SmallVector<int64_t> shape(first.getShape());
  shape[0] = 0;
  for (Value weight : weights)
    shape[0] += cast<RankedTensorType>(weight.getType()).getDimSize(0);
  return RankedTensorType::get(shape, first.getElementType());
}

/// Whether `other` can be merged with `first`, a matmul of the same rows.
static bool mayJoin(LinearOp first, LinearOp other) {
  return other->getBlock() == first->getBlock() && other.getX() == first.getX() &&
         !other.getResidual() && !other.getKernel() && !other.getBias() == !first.getBias() &&
         other.getWeight().getType().getElementType() ==
             first.getWeight().getType().getElementType();
}

namespace {
// linear(x, a), linear(x, b), ... => split(linear(x, concat(a, b, ...)))
struct ProductsOfTheSameRowsAreOne : OpRewritePattern<LinearOp> {
  ProductsOfTheSameRowsAreOne(MLIRContext *context, WeightComposer &weights)
      : OpRewritePattern(context), weights(weights) {}

  LogicalResult matchAndRewrite(LinearOp first, PatternRewriter &rewriter) const override {
    if (!mayJoin(first, first))
      return rewriter.notifyMatchFailure(first, "the product has a residual or a kernel");
    SmallVector<LinearOp> group = findGroup(first);
    if (group.size() < 2)
      return rewriter.notifyMatchFailure(first, "no other product of these rows can join");
    if (group.front() != first)
      return rewriter.notifyMatchFailure(first, "an earlier product begins the group");
    SmallVector<Value> matrices, biases;
    SmallVector<Location> locations;
    SmallVector<Type> types;
    for (LinearOp linear : group) {
      matrices.push_back(linear.getWeight());
      if (linear.getBias())
        biases.push_back(linear.getBias());
      locations.push_back(linear.getLoc());
      types.push_back(linear.getType());
    }
    if (StringRef reason = weights.rejectionReason(matrices, Composition::Concat); !reason.empty())
      return rewriter.notifyMatchFailure(first, reason);
    if (!biases.empty())
      if (StringRef reason = weights.rejectionReason(biases, Composition::Concat); !reason.empty())
        return rewriter.notifyMatchFailure(first, reason);

    Value weight =
              weights.compose(rewriter, matrices, Composition::Concat, getJoinedType(matrices)),
          bias;
    if (!biases.empty())
      bias = weights.compose(rewriter, biases, Composition::Concat, getJoinedType(biases));
    Location loc = rewriter.getFusedLoc(locations);
    int64_t columns = cast<RankedTensorType>(weight.getType()).getDimSize(0);
    auto type =
        RankedTensorType::get({first.getType().getDimSize(0), columns}, rewriter.getF32Type());
    auto merged = LinearOp::create(rewriter, loc, type, first.getX(), weight, bias, Value(),
                                   KernelKindAttr());
    auto split = SplitOp::create(rewriter, loc, types, merged);
    for (auto [linear, part] : llvm::zip_equal(group, split.getParts()))
      rewriter.replaceOp(linear, part);
    matrices.append(biases);
    weights.eraseArguments(rewriter, matrices);
    return success();
  }

private:
  /// Matmuls that can be merged with `first`, itself included, in block order.
  SmallVector<LinearOp> findGroup(LinearOp first) const {
    SmallVector<LinearOp> group;
    for (Operation *user : first.getX().getUsers())
      if (auto linear = dyn_cast<LinearOp>(user); linear && mayJoin(first, linear))
        group.push_back(linear);
    llvm::sort(group, [](LinearOp a, LinearOp b) { return a->isBeforeInBlock(b); });
    return group;
  }

  WeightComposer &weights;
};

struct MergeLinears : mica::impl::MergeLinearsBase<MergeLinears> {
  void runOnOperation() override {
    WeightComposer weights(getOperation());
    RewritePatternSet patterns(&getContext());
    patterns.add<ProductsOfTheSameRowsAreOne>(&getContext(), weights);
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      return signalPassFailure();
    weights.eraseUnusedWeights(getOperation());
  }
};
} // namespace
