//===- FuseQkvAppend.cpp - norms, rope and appends in one op --------------===//

#include "passes/Passes.h"
#include "passes/fusion/Driver.h"

#include "mlir/IR/Dominance.h"

namespace mica {
#define GEN_PASS_DEF_FUSEQKVAPPEND
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// The only user of `value` if that is an `Op`, else null.
template <typename Op> static Op getOnlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<Op>(*value.user_begin()) : Op();
}

namespace {
/// The ops between the split and the use of queries or keys: split_heads, an optional norm, rope.
struct Rotated {
  SplitHeadsOp heads;
  RmsNormOp norm; // may be null
  RopeOp rope;
};
} // namespace

/// Follows `part` of a split to its rope. The rope is null if there are other ops in between.
static Rotated followToRope(Value part) {
  Rotated rotated{getOnlyUser<SplitHeadsOp>(part), {}, {}};
  if (!rotated.heads)
    return rotated;
  rotated.norm = getOnlyUser<RmsNormOp>(rotated.heads.getResult());
  rotated.rope =
      getOnlyUser<RopeOp>(rotated.norm ? rotated.norm.getResult() : rotated.heads.getResult());
  return rotated;
}

static bool isSameRope(RopeOp a, RopeOp b) {
  return a.getPositions() == b.getPositions() && a.getLengths() == b.getLengths() &&
         a.getPairing() == b.getPairing() && a.getTheta() == b.getTheta() &&
         a.getRotaryWidth() == b.getRotaryWidth() && a.getScalingAttr() == b.getScalingAttr();
}

/// Whether there are both norms or none, with the same eps and offset, and each with one weight
/// vector for all heads.
static bool isSameNorm(RmsNormOp a, RmsNormOp b) {
  if (!a || !b)
    return !a && !b;
  auto isVector = [](RmsNormOp norm) {
    return cast<RankedTensorType>(norm.getWeight().getType()).getRank() == 1;
  };
  return a.getEps() == b.getEps() && a.getWeightOffset() == b.getWeightOffset() && isVector(a) &&
         isVector(b);
}

static bool isSamePlace(KvAppendOp a, KvAppendOp b) {
  return a.getLayer() == b.getLayer() && a.getSequences() == b.getSequences() &&
         a.getPositions() == b.getPositions();
}

namespace {
/// The ops that compute queries, keys and values up to the appends.
struct Found {
  Rotated q, k;
  SplitHeadsOp valueHeads;
  KvAppendOp keys, values;
};
} // namespace

/// Why the appends and ropes cannot be replaced by one op before `op`; empty if they can.
static StringRef rejectionReason(Found found, Operation *op) {
  auto [q, k, valueHeads, keys, values] = found;
  if (!isSameRope(q.rope, k.rope))
    return "queries and keys are rotated differently";
  if (!isSameNorm(q.norm, k.norm))
    return "queries and keys are normalized differently";
  if (!isSamePlace(keys, values) || keys.getPositions() != q.rope.getPositions())
    return "keys, values and rope differ in layer, sequences or positions";
  if (keys.getCache().getType() != values.getCache().getType() ||
      keys.getCache() == values.getCache())
    return "the caches of keys and values differ in type or are one";
  if (!keys.getCache().hasOneUse() || !values.getCache().hasOneUse())
    return "a cache is read before its append";
  SmallVector<Value> inputs{keys.getCache(), values.getCache(), keys.getLayer(),
                            keys.getSequences(), keys.getPositions()};
  if (q.rope.getLengths())
    inputs.push_back(q.rope.getLengths());
  if (q.norm)
    inputs.append({q.norm.getWeight(), k.norm.getWeight()});
  DominanceInfo dominance;
  if (!llvm::all_of(inputs, [&](Value input) { return dominance.properlyDominates(input, op); }))
    return "an input of the append is computed after the product";
  return {};
}

/// Creates the op at the insertion point. `products` are [T, columns] tensors that together have
/// the columns of queries, keys and values.
static void fuse(Found found, ValueRange products, PatternRewriter &rewriter) {
  auto [q, k, valueHeads, keys, values] = found;
  RopeOp rope = q.rope;
  auto tableType =
      RankedTensorType::get({cast<RankedTensorType>(rope.getPositions().getType()).getDimSize(0), 2,
                             rope.getRotaryWidth() / 2},
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
      TypeRange{rope.getType(), keys.getType(), values.getType()}, products.front(), table,
      keys.getCache(), values.getCache(), keys.getLayer(), keys.getSequences(), keys.getPositions(),
      q.norm ? q.norm.getWeight() : Value(), q.norm ? k.norm.getWeight() : Value(),
      products.drop_front(), rope.getPairingAttr(), q.norm ? q.norm.getEpsAttr() : FloatAttr(),
      q.norm ? q.norm.getWeightOffsetAttr() : rewriter.getF64FloatAttr(0));
  rewriter.replaceAllUsesWith(rope.getResult(), fused.getQ());
  rewriter.replaceAllUsesWith(keys.getResult(), fused.getKNext());
  rewriter.replaceAllUsesWith(values.getResult(), fused.getVNext());
  for (Operation *part : parts)
    rewriter.eraseOp(part);
}

/// The columns of the first three parts of `split`: its whole operand, or else the first part of a
/// new split whose other parts are the remaining ones.
static Value joinFirstThree(SplitOp split, PatternRewriter &rewriter) {
  ValueRange parts = split.getParts();
  if (parts.size() == 3)
    return split.getX();
  auto whole = cast<RankedTensorType>(split.getX().getType());
  int64_t columns = 0;
  for (Value part : parts.take_front(3))
    columns += cast<RankedTensorType>(part.getType()).getDimSize(1);
  SmallVector<Type> types{
      RankedTensorType::get({whole.getDimSize(0), columns}, whole.getElementType())};
  llvm::append_range(types, parts.drop_front(3).getTypes());
  auto outer = SplitOp::create(rewriter, split.getLoc(), types, split.getX());
  for (auto [part, again] :
       llvm::zip_equal(parts.drop_front(3), ValueRange(outer.getParts()).drop_front()))
    rewriter.replaceAllUsesWith(part, again);
  return outer.getParts().front();
}

namespace {
// q, k, v = split(qkv); rope(norm(q)), kv_append(rope(norm(k))), kv_append(v) => qkv_append(qkv,
// rope_table). Further parts of the split remain parts of a split.
struct SplitRopeAndAppendAreOne : OpRewritePattern<SplitOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(SplitOp split, PatternRewriter &rewriter) const override {
    if (split.getParts().size() < 3)
      return rewriter.notifyMatchFailure(split, "the product is not queries, keys and values");
    Found found{followToRope(split.getParts()[0]), followToRope(split.getParts()[1]),
                getOnlyUser<SplitHeadsOp>(split.getParts()[2]), KvAppendOp(), KvAppendOp()};
    if (!found.q.rope || !found.k.rope || !found.valueHeads)
      return rewriter.notifyMatchFailure(
          split, "something other than norm and rope happens to queries, keys or values");
    found.keys = getOnlyUser<KvAppendOp>(found.k.rope.getResult());
    found.values = getOnlyUser<KvAppendOp>(found.valueHeads.getResult());
    if (!found.keys || !found.values)
      return rewriter.notifyMatchFailure(split,
                                         "keys or values have a use other than their append");
    if (StringRef reason = rejectionReason(found, split); !reason.empty())
      return rewriter.notifyMatchFailure(split, reason);
    fuse(found, joinFirstThree(split, rewriter), rewriter);
    rewriter.eraseOp(split);
    return success();
  }
};

// rope(norm(q)), kv_append(rope(norm(k))), kv_append(v) and the attention that reads them, with
// queries, keys and values from several matmuls => qkv_append(product parts(products), rope_table).
// Weights in different formats have separate matmuls.
struct RopesAndAppendsOfSeveralProductsAreOne : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp attention, PatternRewriter &rewriter) const override {
    Found found = findBefore(attention);
    if (!found.q.heads || !found.k.heads || !found.valueHeads)
      return rewriter.notifyMatchFailure(
          attention, "something other than norm and rope happens to queries, keys or values");
    SmallVector<Value> products;
    SmallVector<Operation *> splits;
    if (!findProducts({found.q.heads.getX(), found.k.heads.getX(), found.valueHeads.getX()},
                      products, splits))
      return rewriter.notifyMatchFailure(attention, "a product has other columns as well");
    Operation *last = nullptr;
    for (Value product : products) {
      Operation *op = product.getDefiningOp();
      if (!op || op->getBlock() != attention->getBlock())
        return rewriter.notifyMatchFailure(attention, "a product is not of the same block");
      if (!last || last->isBeforeInBlock(op))
        last = op;
    }
    Operation *place = last->getNextNode();
    if (StringRef reason = rejectionReason(found, place); !reason.empty())
      return rewriter.notifyMatchFailure(attention, reason);
    // The results of the new op must not be used before it.
    for (Operation *op :
         {found.q.rope.getOperation(), found.keys.getOperation(), found.values.getOperation()})
      for (Operation *user : op->getUsers())
        if (user->getBlock() == place->getBlock() && user->isBeforeInBlock(place))
          return rewriter.notifyMatchFailure(attention, "a result is used before the last product");
    rewriter.setInsertionPoint(place);
    fuse(found, products, rewriter);
    for (Operation *split : splits)
      rewriter.eraseOp(split);
    return success();
  }

private:
  template <typename Op> static Op getOnlyMaker(Value value) {
    auto op = value.getDefiningOp<Op>();
    return op && op->hasOneUse() ? op : Op();
  }

  /// Follows a rope with one use back through an optional norm to split_heads.
  static Rotated followBack(RopeOp rope) {
    Rotated rotated{{}, {}, rope};
    if (!rope)
      return rotated;
    rotated.norm = getOnlyMaker<RmsNormOp>(rope.getX());
    rotated.heads = getOnlyMaker<SplitHeadsOp>(rotated.norm ? rotated.norm.getX() : rope.getX());
    return rotated;
  }

  static Found findBefore(AttentionOp attention) {
    Found found{};
    Value q = attention.getQ();
    if (auto cast = q.getDefiningOp<CastOp>())
      q = cast.getX();
    auto keys = attention.getK().getDefiningOp<ReadsState>(),
         values = attention.getV().getDefiningOp<ReadsState>();
    if (!keys || !values)
      return found;
    found.keys = keys.getState().getDefiningOp<KvAppendOp>();
    found.values = values.getState().getDefiningOp<KvAppendOp>();
    if (!found.keys || !found.values)
      return found;
    found.q = followBack(q.getDefiningOp<RopeOp>());
    found.k = followBack(getOnlyMaker<RopeOp>(found.keys.getX()));
    found.valueHeads = getOnlyMaker<SplitHeadsOp>(found.values.getX());
    return found;
  }

  /// Finds the matmuls whose concatenated columns are those of `sections`. A section is the result
  /// of a matmul, or several are all the results of a split.
  static bool findProducts(ArrayRef<Value> sections, SmallVectorImpl<Value> &products,
                           SmallVectorImpl<Operation *> &splits) {
    for (size_t i = 0; i < sections.size();) {
      if (!sections[i].hasOneUse())
        return false;
      auto split = sections[i].getDefiningOp<SplitOp>();
      if (!split) {
        products.push_back(sections[i++]);
        continue;
      }
      for (Value part : split.getParts())
        if (i == sections.size() || part != sections[i++] || !part.hasOneUse())
          return false;
      products.push_back(split.getX());
      splits.push_back(split);
    }
    return true;
  }
};

struct FuseQkvAppend : mica::impl::FuseQkvAppendBase<FuseQkvAppend> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitRopeAndAppendAreOne, RopesAndAppendsOfSeveralProductsAreOne>(&getContext());
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
