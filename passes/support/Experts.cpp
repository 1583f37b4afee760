//===- Experts.cpp - experts in two halves --------------------------------===//

#include "passes/support/Experts.h"

using namespace mlir;
using namespace mica;

MoeDownOp mica::splitExperts(MoeExpertsOp op, Type inner) {
  OpBuilder builder(op);
  Type element = op.getX().getType().getElementType();
  SmallVector<int64_t> shape(op.getExperts().getType().getShape());
  shape.push_back(op.getInner());
  Value rows = MoeGateUpOp::create(builder, op.getLoc(), RankedTensorType::get(shape, inner),
                                   op.getX(), op.getExperts(), op.getGate(), op.getUp(),
                                   op.getGateBias(), op.getUpBias(), op.getActivationAttr(),
                                   op.getAlphaAttr(), op.getLimitAttr());
  if (inner != element)
    rows = CastOp::create(builder, op.getLoc(), RankedTensorType::get(shape, element), rows);
  auto down = MoeDownOp::create(builder, op.getLoc(), op.getType(), rows, op.getWeights(),
                                op.getExperts(), op.getDown(), op.getDownBias(), op.getResidual());
  op.replaceAllUsesWith(down.getResult());
  op.erase();
  return down;
}
