//===- Norm.cpp - verifiers of the normalisations ------------------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

static LogicalResult verifyNorm(Operation *op, Value x, Value weight, Value result, double eps) {
  if (shapeOf(x).getShape() != shapeOf(result).getShape())
    return op->emitOpError() << "result has shape " << result.getType() << ", expected that of x";
  if (failed(requireSize(op, "the gain", lastDim(weight), lastDim(x), "last axis of x")))
    return failure();
  return requirePositive(op, "eps", eps);
}

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, getX(), getWeight(), getResult(), getEps().convertToDouble());
}

LogicalResult LayerNormOp::verify() {
  if (getBias() &&
      failed(requireSize(*this, "the bias", lastDim(getBias()), lastDim(getX()), "last axis of x")))
    return failure();
  return verifyNorm(*this, getX(), getWeight(), getResult(), getEps().convertToDouble());
}
