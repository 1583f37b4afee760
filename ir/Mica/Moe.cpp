//===- Moe.cpp - verifiers of mixtures of experts -------------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

/// Groups must have equal sizes, and the selected ones at least k experts.
static LogicalResult verifyGroups(MoeGateOp op, int64_t experts, int64_t k) {
  if (!op.getGroups() != !op.getTopkGroup() || !op.getGroups() != !op.getGroupScoring())
    return op.emitOpError("requires all or none of 'groups', 'topk_group' and 'group_scoring'");
  if (!op.getGroups())
    return success();
  int64_t groups = *op.getGroups(), kept = *op.getTopkGroup();
  if (groups < 1 || experts % groups != 0)
    return op.emitOpError() << "has " << experts << " experts, which are not " << groups
                            << " groups of one size";
  if (kept < 1 || kept > groups)
    return op.emitOpError() << "keeps " << kept << " of " << groups << " groups";
  if (k > kept * (experts / groups))
    return op.emitOpError() << "chooses k = " << k << " of the " << kept * (experts / groups)
                            << " experts in the groups that are kept";
  if (op.getGroupScoring() == GroupScoring::BestTwo && experts / groups < 2)
    return op.emitOpError("scores groups by their two best experts, but they have one");
  return success();
}

LogicalResult MoeGateOp::verify() {
  int64_t experts = shapeOf(getGate()).getDimSize(0), k = getK();
  if (k < 1 || k > experts)
    return emitOpError() << "chooses k = " << k << " of " << experts << " experts";
  if (!getEps().isFinite() || getEps().isNegative())
    return emitOpError("has an eps that is negative or not finite");
  if (!getNormalize() && getEps().convertToDouble() != 1e-20)
    return emitOpError("has an eps, which only 'normalize' uses");
  for (Value vector : {getBias(), getEScoreCorrectionBias()})
    if (vector &&
        failed(requireSize(*this, vector == getBias() ? "bias" : "e_score_correction_bias",
                           lastDim(vector), experts, "a number per expert")))
      return failure();
  if (Value scales = getExpertScales();
      scales &&
      failed(requireSize(*this, "expert_scales", lastDim(scales), experts, "a number per expert")))
    return failure();
  if (failed(verifyGroups(*this, experts, k)))
    return failure();
  if (failed(requireSize(*this, "a row of x", lastDim(getX()), lastDim(getGate()),
                         "columns of the gate [E, C]")) ||
      failed(requireSize(*this, "a row of the weights", lastDim(getWeights()), k, "k")) ||
      failed(requireSize(*this, "a row of the experts", lastDim(getExperts()), k, "k")))
    return failure();
  if (failed(requireSameRows(*this, getX(), getWeights())))
    return failure();
  return requireSameRows(*this, getX(), getExperts());
}

/// The matrices have rows for `inner` activations, which `what` names, and for up if it is not
/// separate.
template <typename Op> static LogicalResult verifyGateAndUp(Op op, int64_t inner, StringRef what) {
  RankedTensorType gate = shapeOf(op.getGate());
  if (failed(requireSize(op, "gate", gate.getDimSize(1),
                         op.getUp() ? inner : 2 * roundUp(inner, kBlockColumns),
                         op.getUp() ? what : "gate and up in padded blocks")) ||
      failed(
          requireSize(op, "a row of gate", gate.getDimSize(2), lastDim(op.getX()), "a row of x")))
    return failure();
  if (op.getUp() && shapeOf(op.getUp()).getShape() != gate.getShape())
    return op.emitOpError() << "up has type " << op.getUp().getType()
                            << ", expected the shape of gate, " << gate;
  return success();
}

static SmallVector<Value> gateAndUp(Value gate, Value up) {
  return up ? SmallVector<Value>{gate, up} : SmallVector<Value>{gate};
}

/// All three matmuls must have biases or none, with a row per expert.
static LogicalResult verifyBiases(MoeExpertsOp op) {
  if (!op.getGateBias() != !op.getUpBias() || !op.getGateBias() != !op.getDownBias())
    return op.emitOpError("has biases of gate, up and down, or none of these");
  if (!op.getGateBias())
    return success();
  int64_t experts = shapeOf(op.getDown()).getDimSize(0), inner = op.getInner(),
          columns = lastDim(op.getResult());
  for (auto [bias, size] : {std::pair(op.getGateBias(), inner), std::pair(op.getUpBias(), inner),
                            std::pair(op.getDownBias(), columns)})
    if (failed(requireSize(op, "a stack of biases", shapeOf(bias).getDimSize(0), experts,
                           "experts of down")) ||
        failed(requireSize(op, "a row of biases", lastDim(bias), size, "a row of their product")))
      return failure();
  return success();
}

template <typename Op> static LogicalResult verifyClamp(Op op) {
  if (!op.getAlpha() != !op.getLimit())
    return op.emitOpError("has alpha and limit, or none of these");
  if (!op.getLimit())
    return success();
  if (op.getActivation() != Activation::Silu)
    return op.emitOpError() << "is clamped with " << stringifyActivation(op.getActivation())
                            << ", but only silu is";
  if (!(op.getLimit()->convertToDouble() > 0) || !op.getLimit()->isFinite())
    return op.emitOpError("has a limit that is not a positive number");
  if (!op.getAlpha()->isFinite())
    return op.emitOpError("has an alpha that is not a finite number");
  return success();
}

LogicalResult MoeExpertsOp::verify() {
  RankedTensorType gate = shapeOf(getGate()), down = shapeOf(getDown());
  int64_t inner = getInner();
  if (failed(verifyGateAndUp(*this, inner, "inner")) ||
      failed(requireSize(*this, "down", down.getDimSize(1), lastDim(getResult()),
                         "a row of the result")) ||
      failed(requireSize(*this, "a row of down", down.getDimSize(2), inner, "inner")) ||
      failed(
          requireSize(*this, "down", down.getDimSize(0), gate.getDimSize(0), "experts of gate")) ||
      failed(requireSize(*this, "a row of the experts", lastDim(getExperts()),
                         lastDim(getWeights()), "a row of the weights")))
    return failure();
  if (failed(verifyBiases(*this)) || failed(verifyClamp(*this)))
    return failure();
  if (getResidual() && getResidual().getType() != getResult().getType())
    return emitOpError() << "residual has type " << getResidual().getType()
                         << ", expected that of the result";
  if (failed(requireSameRows(*this, getX(), getWeights())) ||
      failed(requireSameRows(*this, getX(), getExperts())))
    return failure();
  return requireSameRows(*this, getX(), getResult());
}

SmallVector<Value> MoeExpertsOp::getMatrices() { return gateAndUp(getGate(), getUp()); }

SmallVector<Value> MoeExpertsOp::getInnerMatrices() { return {getDown()}; }

SmallVector<Value> MoeExpertsOp::getBiases() {
  return getGateBias() ? SmallVector<Value>{getGateBias(), getUpBias(), getDownBias()}
                       : SmallVector<Value>();
}

LogicalResult MoeGateUpOp::verify() {
  int64_t inner = lastDim(getResult());
  if (failed(verifyGateAndUp(*this, inner, "a row of the result")) ||
      failed(requireSize(*this, "the result", shapeOf(getResult()).getDimSize(1),
                         lastDim(getExperts()), "experts of a row")))
    return failure();
  if (!getGateBias() != !getUpBias())
    return emitOpError("has biases of gate and up, or none of these");
  for (Value bias : getBiases())
    if (failed(requireSize(*this, "a stack of biases", shapeOf(bias).getDimSize(0),
                           shapeOf(getGate()).getDimSize(0), "experts of gate")) ||
        failed(
            requireSize(*this, "a row of biases", lastDim(bias), inner, "a row of their product")))
      return failure();
  if (failed(verifyClamp(*this)) || failed(requireSameRows(*this, getX(), getExperts())))
    return failure();
  return requireSameRows(*this, getX(), getResult());
}

SmallVector<Value> MoeGateUpOp::getMatrices() { return gateAndUp(getGate(), getUp()); }

SmallVector<Value> MoeGateUpOp::getBiases() {
  return getGateBias() ? SmallVector<Value>{getGateBias(), getUpBias()} : SmallVector<Value>();
}

LogicalResult MoeDownOp::verify() {
  int64_t columns = lastDim(getResult());
  if (failed(requireSize(*this, "down", shapeOf(getDown()).getDimSize(1), columns,
                         "a row of the result")) ||
      failed(requireSize(*this, "a row of down", lastDim(getDown()), lastDim(getX()),
                         "the last axis of x")) ||
      failed(requireSize(*this, "x", shapeOf(getX()).getDimSize(1), lastDim(getExperts()),
                         "experts of a row")) ||
      failed(requireSize(*this, "a row of the experts", lastDim(getExperts()),
                         lastDim(getWeights()), "a row of the weights")))
    return failure();
  if (getBias() && (failed(requireSize(*this, "a stack of biases", shapeOf(getBias()).getDimSize(0),
                                       shapeOf(getDown()).getDimSize(0), "experts of down")) ||
                    failed(requireSize(*this, "a row of biases", lastDim(getBias()), columns,
                                       "a row of their product"))))
    return failure();
  if (getResidual() && getResidual().getType() != getResult().getType())
    return emitOpError() << "residual has type " << getResidual().getType()
                         << ", expected that of the result";
  if (failed(requireSameRows(*this, getX(), getWeights())) ||
      failed(requireSameRows(*this, getX(), getExperts())))
    return failure();
  return requireSameRows(*this, getX(), getResult());
}

SmallVector<Value> MoeDownOp::getMatrices() { return {getDown()}; }

SmallVector<Value> MoeDownOp::getBiases() {
  return getBias() ? SmallVector<Value>{getBias()} : SmallVector<Value>();
}
