//===- Linear.cpp - verifiers of matmuls with weights ---------------------===//

#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

LogicalResult EmbeddingOp::verify() {
  if (failed(requireSameRows(*this, getTokens(), getResult())))
    return failure();
  return requireSize(*this, "a row of the result", lastDim(getResult()), lastDim(getTable()),
                     "a row of the table");
}

static LogicalResult verifyProduct(Operation *op, Value x, Value weight, Value result) {
  if (failed(requireSameRows(op, x, result)) ||
      failed(requireSize(op, "a row of x", lastDim(x), lastDim(weight),
                         "columns of the weight [N, K]")))
    return failure();
  return requireSize(op, "a row of the result", lastDim(result), shapeOf(weight).getDimSize(0),
                     "rows of the weight [N, K]");
}

LogicalResult LinearOp::verify() {
  if (getBias() && failed(requireSize(*this, "the bias", lastDim(getBias()), lastDim(getResult()),
                                      "a row of the result")))
    return failure();
  if (getResidual() && getResidual().getType() != getResult().getType())
    return emitOpError() << "residual has type " << getResidual().getType()
                         << ", expected that of the result";
  return verifyProduct(*this, getX(), getWeight(), getResult());
}

SmallVector<Value> LinearOp::getBiases() {
  return getBias() ? SmallVector<Value>{getBias()} : SmallVector<Value>();
}

LogicalResult HeadLinearOp::verify() {
  RankedTensorType x = shapeOf(getX()), weight = shapeOf(getWeight()),
                   result = shapeOf(getResult());
  if (failed(requireSameRows(*this, getX(), getResult())) ||
      failed(requireSize(*this, "x", x.getDimSize(1), weight.getDimSize(0),
                         "matrices of the weight [H, N, K]")) ||
      failed(requireSize(*this, "the result", result.getDimSize(1), weight.getDimSize(0),
                         "matrices of the weight [H, N, K]")) ||
      failed(requireSize(*this, "a head of x", x.getDimSize(2), weight.getDimSize(2),
                         "columns of the weight [H, N, K]")))
    return failure();
  return requireSize(*this, "a head of the result", result.getDimSize(2), weight.getDimSize(1),
                     "rows of the weight [H, N, K]");
}

LogicalResult LmHeadOp::verify() { return verifyProduct(*this, getX(), getWeight(), getResult()); }
