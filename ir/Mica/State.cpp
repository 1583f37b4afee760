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
  for (Value rows : {Value(getK()), Value(getV()), Value(getDecay()), Value(getSequences()),
                     Value(getPositions())})
    if (failed(requireSameRows(*this, getQ(), rows)))
      return failure();
  return success();
}
