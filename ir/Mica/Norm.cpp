//===- Norm.cpp - verifiers of the normalizations -------------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

static LogicalResult verifyNorm(Operation *op, Value x, Value weight, Value result, double eps) {
  if (shapeOf(x).getShape() != shapeOf(result).getShape())
    return op->emitOpError() << "result has shape " << result.getType() << ", expected that of x";
  if (failed(requireSize(op, "the weight", lastDim(weight), lastDim(x), "last axis of x")))
    return failure();
  ArrayRef<int64_t> heads = shapeOf(x).getShape().drop_front().drop_back();
  if (shapeOf(weight).getRank() == 2 && heads != shapeOf(weight).getShape().drop_back())
    return op->emitOpError() << "the weight is " << weight.getType()
                             << ", but x has no such heads: " << x.getType();
  return requirePositive(op, "eps", eps);
}

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, getX(), getWeight(), getResult(), getEps().convertToDouble());
}

LogicalResult LayerNormOp::verify() {
  if (getBias() &&
      failed(requireSize(*this, "the bias", lastDim(getBias()), lastDim(getX()), "last axis of x")))
    return failure();
  if (getBias() && shapeOf(getBias()).getShape() != shapeOf(getWeight()).getShape())
    return emitOpError() << "the bias has the shape of " << getBias().getType()
                         << ", expected that of the weight";
  return verifyNorm(*this, getX(), getWeight(), getResult(), getEps().convertToDouble());
}

LogicalResult L2NormOp::verify() {
  return requirePositive(*this, "eps", getEps().convertToDouble());
}

// Norms compute a whole row before writing it.
bool RmsNormOp::canQuantizeResult() { return true; }
bool LayerNormOp::canQuantizeResult() { return true; }
