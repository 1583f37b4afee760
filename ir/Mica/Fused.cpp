//===- Fused.cpp - verifiers of ops created by fusion ---------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

LogicalResult RopeTableOp::verify() {
  int64_t width = getRotaryDim();
  if (width < 2 || width % 2 != 0)
    return emitOpError() << "rotary_dim must be positive and even, got " << width;
  if (!(getTheta().convertToDouble() > 1) || getTheta().isInfinity())
    return emitOpError() << "theta must be above 1 and finite, got "
                         << getTheta().convertToDouble();
  if (failed(requireSize(*this, "the result", shapeOf(getResult()).getDimSize(1), 2,
                         "cosine and sine")) ||
      failed(requireSize(*this, "a row of the result", lastDim(getResult()), width / 2,
                         "half of rotary_dim")))
    return failure();
  if (failed(requireScaling(*this, getScalingAttr(), width, getPositions(), getLengths())))
    return failure();
  return requireSameRows(*this, getPositions(), getResult());
}

SmallVector<Value> QkvAppendOp::getTokenRows() {
  SmallVector<Value> rows{getQkv(), getTable()};
  llvm::append_range(rows, getParts());
  return rows;
}

Value QkvAppendOp::getRoundedResult() { return getQ(); }

LogicalResult QkvAppendOp::verify() {
  KvCacheType keys = getKCache().getType(), values = getVCache().getType();
  RankedTensorType q = shapeOf(getQ());
  if (keys.withLayout({}) != values.withLayout({}))
    return emitOpError() << "key cache " << keys << " and value cache " << values << " differ";
  int64_t ofQueries = q.getDimSize(1) * keys.getHeadDim(),
          ofKeys = keys.getHeads() * keys.getHeadDim(), columns = lastDim(getQkv());
  auto endsWhole = [&](int64_t end) {
    return end == ofQueries || end == ofQueries + ofKeys || end == ofQueries + 2 * ofKeys;
  };
  bool whole = endsWhole(columns);
  for (Value part : getParts())
    whole &= endsWhole(columns += lastDim(part));
  if (failed(requireSize(*this, "a head of q", q.getDimSize(2), keys.getHeadDim(),
                         "head_dim of the cache")) ||
      failed(requireSize(*this, "a row of qkv", columns, ofQueries + 2 * ofKeys,
                         "heads of q, keys and values times head_dim")))
    return failure();
  if (!whole)
    return emitOpError("has parts that end inside queries, keys or values");
  if (failed(
          requireSize(*this, "the table", shapeOf(getTable()).getDimSize(1), 2, "cosine and sine")))
    return failure();
  if (2 * lastDim(getTable()) > keys.getHeadDim())
    return emitOpError() << "table rotates " << 2 * lastDim(getTable()) << " elements of a head of "
                         << keys.getHeadDim();
  if (!getQNorm() != !getEps() || !getQNorm() != !getKNorm())
    return emitOpError("has both norms and eps or none of them");
  if (!getQNorm() && !getWeightOffset().isZero())
    return emitOpError("has a weight_offset, but no norms");
  for (Value norm : {getQNorm(), getKNorm()})
    if (norm && failed(requireSize(*this, "a norm", lastDim(norm), keys.getHeadDim(), "head_dim")))
      return failure();
  SmallVector<Value> others{getTable(), getSequences(), getPositions(), getQ()};
  llvm::append_range(others, getParts());
  for (Value rows : others)
    if (failed(requireSameRows(*this, getQkv(), rows)))
      return failure();
  return success();
}

LogicalResult GatedLinearOp::verify() {
  if (failed(requireSize(*this, "a row of x", lastDim(getX()), lastDim(getWeight()),
                         "columns of the weight")) ||
      failed(requireSize(*this, "the weight", shapeOf(getWeight()).getDimSize(0),
                         2 * roundUp(lastDim(getResult()), kBlockColumns),
                         "gate and up in padded blocks")))
    return failure();
  return requireSameRows(*this, getX(), getResult());
}
