//===- Attention.cpp - rope, caches and attention -------------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

int64_t RopeOp::getRotaryWidth() { return getRotaryDim().value_or(lastDim(getX())); }

LogicalResult SinusoidOp::verify() {
  if (failed(requireSameRows(*this, getPositions(), getResult())))
    return failure();
  if (int64_t width = lastDim(getResult()); width < 4 || width % 2 != 0)
    return emitOpError() << "computes as many sines as cosines, at least two, but a row has "
                         << width << " elements";
  if (auto row = getPaddingIdx(); row && (static_cast<int64_t>(*row) < 0 || *row > INT32_MAX))
    return emitOpError() << "has the padding_idx " << static_cast<int64_t>(*row)
                         << ", which is the row of no position";
  return success();
}

LogicalResult ConcatHeadsOp::verify() {
  RankedTensorType result = shapeOf(getResult());
  for (Value part : {getA(), getB()}) {
    if (failed(requireSameRows(*this, part, getResult())))
      return failure();
    if (shapeOf(part).getElementType() != result.getElementType())
      return emitOpError("joins heads of its own element type");
    int64_t heads = shapeOf(part).getDimSize(1);
    if (heads != 1 && heads != result.getDimSize(1))
      return emitOpError() << "has a part of " << heads << " heads, but the result has "
                           << result.getDimSize(1);
  }
  return requireSize(*this, "a head of the result", result.getDimSize(2),
                     lastDim(getA()) + lastDim(getB()), "both parts");
}

LogicalResult RopeOp::verify() {
  int64_t width = getRotaryWidth(), headDim = lastDim(getX());
  if (width < 0 || width > headDim)
    return emitOpError() << "rotary_dim " << width << " is outside of head_dim " << headDim;
  if (width % 2 != 0)
    return emitOpError() << "rotates pairs of elements, so rotary_dim " << width << " must be even";
  if (failed(requireSameRows(*this, getX(), getPositions())))
    return failure();
  double theta = getTheta().convertToDouble();
  if (!(theta > 1) || getTheta().isInfinity())
    return emitOpError() << "theta must be above 1 and finite, got " << theta;
  return requireScaling(*this, getScalingAttr(), width, getPositions(), getLengths());
}

// x. => rope with rotary_dim 0 => x.
OpFoldResult RopeOp::fold(FoldAdaptor) {
  if (getRotaryWidth() == 0)
    return getX();
  return {};
}

LogicalResult KvAppendOp::verify() {
  KvCacheType cache = getCache().getType();
  RankedTensorType x = shapeOf(getX());
  if (failed(requireSize(*this, "x", x.getDimSize(1), cache.getHeads(), "heads of the cache")) ||
      failed(requireSize(*this, "a head of x", x.getDimSize(2), cache.getHeadDim(),
                         "head_dim of the cache")))
    return failure();
  Type from = x.getElementType(), to = cache.getElementType();
  if (!isQuantized(to) && from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth())
    return emitOpError() << "x of " << from << " is narrower than the cache of " << to;
  if (failed(requireSameRows(*this, getX(), getSequences())))
    return failure();
  return requireSameRows(*this, getX(), getPositions());
}

LogicalResult KvReadOp::verify() {
  KvCacheType cache = getCache().getType();
  RankedTensorType result = shapeOf(getResult());
  if (result.getElementType() != cache.getElementType())
    return emitOpError() << "reads " << result.getElementType() << " from a cache of "
                         << cache.getElementType();
  if (failed(requireSize(*this, "the result", result.getDimSize(2), cache.getHeads(),
                         "heads of the cache")))
    return failure();
  if (result.getDimSize(3) < 1 || result.getDimSize(3) > cache.getHeadDim())
    return emitOpError() << "reads " << result.getDimSize(3) << " elements of heads of "
                         << cache.getHeadDim();
  return success();
}

LogicalResult RepeatKvOp::verify() {
  if (static_cast<int64_t>(getTimes()) < 1)
    return emitOpError() << "repeats at least once, got " << static_cast<int64_t>(getTimes());
  RankedTensorType x = shapeOf(getX()), result = shapeOf(getResult());
  if (failed(requireSize(*this, "the result", result.getDimSize(2), x.getDimSize(2) * getTimes(),
                         "heads of x times the count")))
    return failure();
  return requireSize(*this, "a head of the result", result.getDimSize(3), x.getDimSize(3),
                     "a head of x");
}

// repeat_kv by 1 => x.
OpFoldResult RepeatKvOp::fold(FoldAdaptor) {
  if (getTimes() == 1 && getX().getType() == getType())
    return getX();
  return {};
}

LogicalResult AttentionOp::verify() {
  RankedTensorType q = shapeOf(getQ()), k = shapeOf(getK()), v = shapeOf(getV());
  if (k.getDimSize(2) == 0 || q.getDimSize(1) % k.getDimSize(2) != 0)
    return emitOpError() << "has " << q.getDimSize(1) << " query heads, not a multiple of "
                         << k.getDimSize(2) << " key heads";
  if (failed(requireSize(*this, "v", v.getDimSize(2), k.getDimSize(2), "heads of k")) ||
      failed(requireSize(*this, "a head of q", q.getDimSize(2), k.getDimSize(3), "a head of k")) ||
      failed(requireSize(*this, "a head of the result", lastDim(getResult()), v.getDimSize(3),
                         "a head of v")) ||
      failed(requireSize(*this, "the result", shapeOf(getResult()).getDimSize(1), q.getDimSize(1),
                         "heads of q")))
    return failure();
  if (failed(requireSameRows(*this, getQ(), getResult())) ||
      failed(requireSameRows(*this, getQ(), getSequences())) ||
      failed(requireSameRows(*this, getQ(), getPositions())))
    return failure();
  if (getWindow() && static_cast<int64_t>(*getWindow()) < 1)
    return emitOpError() << "window must be at least 1, got " << static_cast<int64_t>(*getWindow());
  if (getAlibi() && failed(requireSize(*this, "alibi", getAlibi()->size(), q.getDimSize(1),
                                       "a slope per query head")))
    return failure();
  if (getSinks() && failed(requireSize(*this, "sinks", lastDim(getSinks()), q.getDimSize(1),
                                       "a number per query head")))
    return failure();
  int64_t shared = q.getDimSize(1) / k.getDimSize(2),
          together = getTiling() ? getTiling()->getHeads() : 0;
  if (together > 0 && shared % together != 0)
    return emitOpError() << "is cut into tasks of " << together << " query heads, but " << shared
                         << " share a key head";
  if (getSoftcap() && failed(requirePositive(*this, "softcap", getSoftcap()->convertToDouble())))
    return failure();
  return requirePositive(*this, "scale", getScale().convertToDouble());
}
