//===- FuseQkvAppend.cpp - norms, rope and appends in one pass ----------------===//

#include "passes/Fusion/Driver.h"
#include "passes/Passes.h"

#include "mlir/IR/Dominance.h"

namespace mica {
#define GEN_PASS_DEF_FUSEQKVAPPEND
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// The only user of `value` when it is an `Op`, else null.
template <typename Op> static Op getOnlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

namespace {
/// What happens to the queries or keys between the split and their use: split_heads, an optional
/// norm, rope.
struct Turned {
  SplitHeadsOp heads;
  RmsNormOp norm; // may be null
  RopeOp rope;
};
} // namespace

/// Follows `part` of a split to its rope; the rope is null when something else happens on the way.
static Turned followToRope(Value part) {
  Turned turned{getOnlyUser<SplitHeadsOp>(part), {}, {}};
  if (!turned.heads)
    return turned;
  turned.norm = getOnlyUser<RmsNormOp>(turned.heads.getResult());
  turned.rope =
      getOnlyUser<RopeOp>(turned.norm ? turned.norm.getResult() : turned.heads.getResult());
  return turned;
}

static bool isSameRope(RopeOp a, RopeOp b) {
  return a.getPositions() == b.getPositions() && a.getLengths() == b.getLengths() &&
         a.getPairing() == b.getPairing() && a.getTheta() == b.getTheta() &&
         a.getRotaryWidth() == b.getRotaryWidth() && a.getScalingAttr() == b.getScalingAttr();
}

/// Both norms or none; of the same eps and offset, and with one gain for all heads.
static bool isSameNorm(RmsNormOp a, RmsNormOp b) {
  if (!a || !b)
    return !a && !b;
  auto isVector = [](RmsNormOp norm) {
    return cast<RankedTensorType>(norm.getWeight().getType()).getRank() == 1;
  };
  return a.getEps() == b.getEps() && a.getGainOffset() == b.getGainOffset() && isVector(a) &&
         isVector(b);
}

static bool isSamePlace(KvAppendOp a, KvAppendOp b) {
  return a.getLayer() == b.getLayer() && a.getSequences() == b.getSequences() &&
         a.getPositions() == b.getPositions();
}

namespace {
// q, k, v = split(qkv); rope(norm(q)), kv_append(rope(norm(k))), kv_append(v) => qkv_append(qkv,
// rope_table)
struct SplitRopeAndAppendAreOne : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SplitOp split, PatternRewriter &rewriter) const override {
    if (split.getParts().size() != 3)
      return rewriter.notifyMatchFailure(split, "the product is not queries, keys and values");
    Turned q = followToRope(split.getParts()[0]), k = followToRope(split.getParts()[1]);
    auto valueHeads = getOnlyUser<SplitHeadsOp>(split.getParts()[2]);
    if (!q.rope || !k.rope || !valueHeads)
      return rewriter.notifyMatchFailure(
          split, "something else than norm and rope happens to queries, keys or values");
    auto keys = getOnlyUser<KvAppendOp>(k.rope.getResult());
    auto values = getOnlyUser<KvAppendOp>(valueHeads.getResult());
    if (!keys || !values)
      return rewriter.notifyMatchFailure(split,
                                         "keys or values have another use than their append");
    if (!isSameRope(q.rope, k.rope))
      return rewriter.notifyMatchFailure(split, "queries and keys are turned differently");
    if (!isSameNorm(q.norm, k.norm))
      return rewriter.notifyMatchFailure(split, "queries and keys are normalised differently");
    if (!isSamePlace(keys, values) || keys.getPositions() != q.rope.getPositions())
      return rewriter.notifyMatchFailure(
          split, "keys, values and rope differ in layer, sequences or positions");
    if (keys.getCache().getType() != values.getCache().getType() ||
        keys.getCache() == values.getCache())
      return rewriter.notifyMatchFailure(split,
                                         "the caches of keys and values differ in type or are one");
    if (!keys.getCache().hasOneUse() || !values.getCache().hasOneUse())
      return rewriter.notifyMatchFailure(split, "a cache is read before its append");
    SmallVector<Value> inputs{keys.getCache(), values.getCache(), keys.getLayer(),
                              keys.getSequences(), keys.getPositions()};
    if (q.rope.getLengths())
      inputs.push_back(q.rope.getLengths());
    if (q.norm)
      inputs.append({q.norm.getWeight(), k.norm.getWeight()});
    DominanceInfo dominance;
    if (!llvm::all_of(inputs,
                      [&](Value input) { return dominance.properlyDominates(input, split); }))
      return rewriter.notifyMatchFailure(split,
                                         "an input of the append is computed after the product");
    rewrite(split, q, k, valueHeads, keys, values, rewriter);
    return success();
  }

private:
  static void rewrite(SplitOp split, Turned q, Turned k, SplitHeadsOp valueHeads, KvAppendOp keys,
                      KvAppendOp values, PatternRewriter &rewriter) {
    RopeOp rope = q.rope;
    auto tableType =
        RankedTensorType::get({cast<RankedTensorType>(rope.getPositions().getType()).getDimSize(0),
                               2, rope.getRotaryWidth() / 2},
                              rewriter.getF32Type());
    Location ropeLoc = rewriter.getFusedLoc({rope.getLoc(), k.rope.getLoc()});
    Value table =
        RopeTableOp::create(rewriter, ropeLoc, tableType, rope.getPositions(), rope.getLengths(),
                            rewriter.getI64IntegerAttr(rope.getRotaryWidth()), rope.getThetaAttr(),
                            rope.getScalingAttr());
    SmallVector<Operation *> parts{values, keys, k.rope, rope};
    if (q.norm)
      parts.append({k.norm, q.norm});
    parts.append({valueHeads, k.heads, q.heads});
    SmallVector<Location> locations;
    for (Operation *part : parts)
      locations.push_back(part->getLoc());
    auto fused = QkvAppendOp::create(
        rewriter, rewriter.getFusedLoc(locations),
        TypeRange{rope.getType(), keys.getType(), values.getType()}, split.getX(), table,
        keys.getCache(), values.getCache(), keys.getLayer(), keys.getSequences(),
        keys.getPositions(), q.norm ? q.norm.getWeight() : Value(),
        q.norm ? k.norm.getWeight() : Value(), rope.getPairingAttr(),
        q.norm ? q.norm.getEpsAttr() : FloatAttr(),
        q.norm ? q.norm.getGainOffsetAttr() : rewriter.getF64FloatAttr(0));
    rewriter.replaceAllUsesWith(rope.getResult(), fused.getQ());
    rewriter.replaceAllUsesWith(keys.getResult(), fused.getKNext());
    rewriter.replaceAllUsesWith(values.getResult(), fused.getVNext());
    for (Operation *part : parts)
      rewriter.eraseOp(part);
    rewriter.eraseOp(split);
  }
};

struct FuseQkvAppend : mica::impl::FuseQkvAppendBase<FuseQkvAppend> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitRopeAndAppendAreOne>(&getContext());
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
