//===- State.cpp - ops on states of fixed size ----------------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

LogicalResult CausalConv1dOp::verify() {
  RollingStateType state = getState().getType();
  int64_t channels = lastDim(getX());
  if (failed(requireSize(*this, "x", channels, state.getChannels(), "channels of the state")) ||
      failed(requireSize(*this, "weight", shapeOf(getWeight()).getDimSize(0), channels,
                         "a filter per channel")) ||
      failed(requireSize(*this, "a filter", lastDim(getWeight()), state.getWindow(),
                         "window of the state")))
    return failure();
  if (getBias() &&
      failed(requireSize(*this, "bias", lastDim(getBias()), channels, "a number per channel")))
    return failure();
  if (failed(requireSameRows(*this, getX(), getSequences())))
    return failure();
  return requireSameRows(*this, getX(), getPositions());
}

LogicalResult SoftplusOp::verify() {
  return requireSize(*this, "bias", lastDim(getBias()), lastDim(getX()), "a number per column");
}

LogicalResult DecayOp::verify() {
  return requireSize(*this, "a_log", lastDim(getALog()), lastDim(getDt()), "a number per head");
}

LogicalResult ScaleHeadsOp::verify() {
  if (failed(requireSize(*this, "factors", lastDim(getFactors()), shapeOf(getX()).getDimSize(1),
                         "a number per head")))
    return failure();
  return hasWeight() ? success() : requireSameRows(*this, getX(), getFactors());
}

LogicalResult LinearAttentionOp::verify() {
  RecurrentStateType state = getState().getType();
  RankedTensorType q = shapeOf(getQ()), v = shapeOf(getV());
  int64_t heads = v.getDimSize(1), groups = q.getDimSize(1);
  if (failed(requireSize(*this, "v", heads, state.getHeads(), "heads of the state")) ||
      failed(requireSize(*this, "decay", lastDim(getDecay()), heads, "a number per head of v")) ||
      failed(requireSize(*this, "a head of q and k", lastDim(getQ()), state.getKeyDim(),
                         "keys of the state")) ||
      failed(requireSize(*this, "a head of v", lastDim(getV()), state.getValueDim(),
                         "values of the state")))
    return failure();
  if (groups == 0 || heads % groups != 0)
    return emitOpError() << heads << " heads of v are not a multiple of the " << groups
                         << " heads of q and k";
  if (getBeta() &&
      failed(requireSize(*this, "beta", lastDim(getBeta()), heads, "a number per head of v")))
    return failure();
  SmallVector<Value> others = getTokenRows();
  llvm::append_values(others, getSequences(), getPositions());
  for (Value rows : others)
    if (failed(requireSameRows(*this, getQ(), rows)))
      return failure();
  return success();
}
