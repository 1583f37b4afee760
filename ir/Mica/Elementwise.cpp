//===- Elementwise.cpp - arithmetic, activations, rounding, reshapes ------===//

#include "ir/Mica/Verify.h"

#include <cmath>

using namespace mlir;
using namespace mica;

LogicalResult ScaleOp::verify() {
  double factor = getFactor().convertToDouble();
  if (std::isfinite(factor) && factor != 0)
    return success();
  return emitOpError() << "scales by a finite number other than zero, got " << factor;
}

LogicalResult ScalePartsOp::verify() {
  if (getFactors().size() != getWidths().size())
    return emitOpError() << "has " << getFactors().size() << " factors for " << getWidths().size()
                         << " parts";
  int64_t columns = 0;
  for (auto [factor, width] : llvm::zip(getFactors(), getWidths())) {
    if (!std::isfinite(factor) || factor == 0)
      return emitOpError() << "scales by finite numbers other than zero, got " << factor;
    if (width < 1 || width > lastDim(getX()))
      return emitOpError() << "has a part of " << width << " columns";
    columns += width;
  }
  return requireSize(*this, "a row of x", lastDim(getX()), columns, "columns of all parts");
}

LogicalResult SoftcapOp::verify() {
  return requirePositive(*this, "the cap", getCap().convertToDouble());
}

LogicalResult SigmoidGateOp::verify() {
  int64_t numbers = lastDim(getGate()), columns = lastDim(getX());
  if (numbers != 1 && numbers != columns)
    return emitOpError() << "a row of the gate has size " << numbers << ", expected 1 or "
                         << columns << " (a number per row or per element)";
  return requireSameRows(*this, getX(), getGate());
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  if (getX().getType() == getType())
    return getX();
  return {};
}

/// Compares [T, H * D] with [T, H, D]: they must have the same element type and number of elements
/// per row.
static LogicalResult verifyHeads(Operation *op, Value rows, Value heads) {
  RankedTensorType rowType = shapeOf(rows), headType = shapeOf(heads);
  if (rowType.getElementType() != headType.getElementType())
    return op->emitOpError("does not change the element type");
  if (failed(requireSameRows(op, rows, heads)))
    return failure();
  return requireSize(op, "a row", rowType.getDimSize(1),
                     headType.getDimSize(1) * headType.getDimSize(2), "heads times head_dim");
}

LogicalResult SplitHeadsOp::verify() { return verifyHeads(*this, getX(), getResult()); }
LogicalResult MergeHeadsOp::verify() { return verifyHeads(*this, getResult(), getX()); }

// x, where the => split_heads(merge_heads(x)) => x, if the shapes agree.
OpFoldResult SplitHeadsOp::fold(FoldAdaptor) {
  if (auto merge = getX().getDefiningOp<MergeHeadsOp>();
      merge && merge.getX().getType() == getType())
    return merge.getX();
  return {};
}

// merge_heads(split_heads(x)) => x.
OpFoldResult MergeHeadsOp::fold(FoldAdaptor) {
  if (auto split = getX().getDefiningOp<SplitHeadsOp>())
    return split.getX();
  return {};
}

LogicalResult SplitOp::verify() {
  int64_t columns = 0;
  for (Value part : getParts()) {
    if (failed(requireSameRows(*this, getX(), part)))
      return failure();
    columns += lastDim(part);
  }
  return requireSize(*this, "a row of x", lastDim(getX()), columns, "columns of all parts");
}

LogicalResult SelectHeadOp::verify() {
  if (failed(requireSameRows(*this, getX(), getResult())))
    return failure();
  return requireSize(*this, "a row of the result", lastDim(getResult()), lastDim(getX()),
                     "a head of x");
}

LogicalResult SelectRowsOp::verify() {
  if (shapeOf(getX()).getElementType() != shapeOf(getResult()).getElementType())
    return emitOpError("does not change the element type");
  if (failed(requireSameRows(*this, getRows(), getResult())))
    return failure();
  return requireSize(*this, "a row of the result", lastDim(getResult()), lastDim(getX()),
                     "a row of x");
}
