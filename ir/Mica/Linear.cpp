//===- Linear.cpp - verifiers of products with weights --------------------------===//

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

LogicalResult LmHeadOp::verify() { return verifyProduct(*this, getX(), getWeight(), getResult()); }
