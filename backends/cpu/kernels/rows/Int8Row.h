//===- Int8Row.h - rows of f32 become integers ------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ROWS_INT8ROW_H
#define MICA_BACKENDS_CPU_KERNELS_ROWS_INT8ROW_H

#include "backends/cpu/kernels/KernelBuilder.h"

namespace mica::cpu {

/// What makes integers in [-limit, limit] of numbers whose largest magnitude is known.
struct IntegerScale {
  IntegerScale(KernelBuilder &b, mlir::Value largest, float limit = 127);
  /// The integers [16 x i32] of a vector.
  mlir::Value integersOf(KernelBuilder &b, mlir::Value numbers) const;

  mlir::Value scale;   ///< f32: 0 for zeros, infinite or NaN where there is such a number
  mlir::Value inverse; ///< of the scale, in all lanes
};

/// A row as !mica.int8 has it, whose elements are computed twice: the scale needs the largest of
/// them.
class Int8Row {
public:
  /// 16 neighbors from `column` on as f32; what follows `live` (null: nothing) is not looked
  /// at.
  using Compute = llvm::function_ref<mlir::Value(mlir::Value column, mlir::Value live)>;

  /// Emits the scale of `columns` elements; `compute` must outlive the row.
  Int8Row(KernelBuilder &b, int64_t columns, Compute compute);

  /// The integers [16 x i32] of 16 neighbors, zero after `live`.
  mlir::Value integers(mlir::Value column, mlir::Value live) const;

  /// f32: 0 for a row of zeros, infinite or NaN where the row holds such a number.
  mlir::Value scale;

private:
  mlir::Value values(mlir::Value column, mlir::Value live) const;

  KernelBuilder &b;
  Compute compute;
  std::optional<IntegerScale> integer;
};

/// The largest magnitude of vectors of f32, as a scalar: infinite or NaN where there is such a
/// number.
mlir::Value largestMagnitude(KernelBuilder &b, llvm::ArrayRef<mlir::Value> vectors);

/// Writes a number of 32 bits to the bytes of `buffer` that begin at `at`.
void storeAsBytes(KernelBuilder &b, mlir::Value number, mlir::Value buffer, mlir::ValueRange at);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ROWS_INT8ROW_H
