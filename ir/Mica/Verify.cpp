//===- Verify.cpp - checks shared by several ops --------------------------===//

#include "ir/Mica/Verify.h"
#include "ir/Mica/RopeFrequencies.h"

#include <cmath>

using namespace mlir;
using namespace mica;

LogicalResult mica::requirePositive(Operation *op, StringRef what, double value) {
  if (value > 0 && std::isfinite(value))
    return success();
  return op->emitOpError() << what << " must be a positive number, got " << value;
}

LogicalResult mica::requireScaling(Operation *op, RopeScalingAttr scaling, int64_t width,
                                   Value positions, Value lengths) {
  auto emitError = [&] { return op->emitOpError(); };
  if (scaling && failed(scaling.verifyPairs(emitError, width / 2)))
    return failure();
  bool follows = ropeLengthThreshold(scaling).has_value();
  if (follows && !lengths)
    return op->emitOpError("has a scaling that depends on the sequence length: add lengths");
  if (!follows && lengths)
    return op->emitOpError("has lengths, but its scaling does not depend on them: remove them");
  return lengths ? requireSameRows(op, positions, lengths) : success();
}

LogicalResult mica::requireSameRows(Operation *op, Value a, Value b) {
  int64_t rowsA = shapeOf(a).getDimSize(0), rowsB = shapeOf(b).getDimSize(0);
  if (rowsA == rowsB)
    return success();
  return op->emitOpError() << "operands and results differ in their number of rows: " << a.getType()
                           << " and " << b.getType();
}
