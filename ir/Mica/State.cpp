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
