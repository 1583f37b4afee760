//===- Moe.cpp - verifiers of mixtures of experts -------------------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

LogicalResult MoeGateOp::verify() {
  int64_t experts = shapeOf(getGate()).getDimSize(0), k = getK();
  if (k < 1 || k > experts)
    return emitOpError() << "chooses k = " << k << " of " << experts << " experts";
  if (failed(requireSize(*this, "a row of x", lastDim(getX()), lastDim(getGate()),
                         "columns of the gate [E, C]")) ||
      failed(requireSize(*this, "a row of the weights", lastDim(getWeights()), k, "k")) ||
      failed(requireSize(*this, "a row of the experts", lastDim(getExperts()), k, "k")))
    return failure();
  if (failed(requireSameRows(*this, getX(), getWeights())))
    return failure();
  return requireSameRows(*this, getX(), getExperts());
}

LogicalResult MoeExpertsOp::verify() {
  RankedTensorType gate = shapeOf(getGate()), down = shapeOf(getDown());
  int64_t inner = getInner(), hidden = lastDim(getX());
  int64_t gateRows = getUp() ? inner : 2 * roundUp(inner, kBlockColumns);
  if (failed(requireSize(*this, "gate", gate.getDimSize(1), gateRows,
                         getUp() ? "inner" : "gate and up in padded blocks")) ||
      failed(requireSize(*this, "a row of gate", gate.getDimSize(2), hidden, "a row of x")) ||
      failed(requireSize(*this, "down", down.getDimSize(1), lastDim(getResult()),
                         "a row of the result")) ||
      failed(requireSize(*this, "a row of down", down.getDimSize(2), inner, "inner")) ||
      failed(
          requireSize(*this, "down", down.getDimSize(0), gate.getDimSize(0), "experts of gate")) ||
      failed(requireSize(*this, "a row of the experts", lastDim(getExperts()),
                         lastDim(getWeights()), "a row of the weights")))
    return failure();
  if (getUp() && getUp().getType() != getGate().getType())
    return emitOpError() << "up has type " << getUp().getType() << ", expected that of gate";
  if (getResidual() && getResidual().getType() != getResult().getType())
    return emitOpError() << "residual has type " << getResidual().getType()
                         << ", expected that of the result";
  if (failed(requireSameRows(*this, getX(), getWeights())) ||
      failed(requireSameRows(*this, getX(), getExperts())))
    return failure();
  return requireSameRows(*this, getX(), getResult());
}
