//===- Verify.h - checks shared by several ops ------------------*- C++ -*-===//

#ifndef MICA_IR_MICA_VERIFY_H
#define MICA_IR_MICA_VERIFY_H

#include "ir/Mica/Mica.h"

namespace mica {

inline mlir::RankedTensorType shapeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}

/// Extent of the last axis.
inline int64_t lastDim(mlir::Value value) { return shapeOf(value).getShape().back(); }

/// Fails with "`what` has size A, expected B (why)" unless both sizes are equal.
inline llvm::LogicalResult requireSize(mlir::Operation *op, llvm::StringRef what, int64_t actual,
                                       int64_t expected, llvm::StringRef why) {
  if (actual == expected)
    return mlir::success();
  return op->emitOpError() << what << " has size " << actual << ", expected " << expected << " ("
                           << why << ")";
}

/// Fails unless `value` is a positive, finite number.
llvm::LogicalResult requirePositive(mlir::Operation *op, llvm::StringRef what, double value);

/// Fails if `scaling` does not support `width` rotated elements, or if `lengths` is given although
/// `scaling` does not depend on it, or the reverse.
llvm::LogicalResult requireScaling(mlir::Operation *op, RopeScalingAttr scaling, int64_t width,
                                   mlir::Value positions, mlir::Value lengths);

/// Fails unless both values have the same leading extent, dynamic or not.
llvm::LogicalResult requireSameRows(mlir::Operation *op, mlir::Value a, mlir::Value b);

} // namespace mica

#endif // MICA_IR_MICA_VERIFY_H
