//===- Int8Row.h - quantization of rows to 8-bit integers -------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ROWS_INT8ROW_H
#define MICA_BACKENDS_CPU_KERNELS_ROWS_INT8ROW_H

#include "backends/cpu/kernels/KernelBuilder.h"

namespace mica::cpu {

/// Quantizes numbers with a known maximum magnitude to integers in [-limit, limit].
struct IntegerScale {
  IntegerScale(KernelBuilder &b, mlir::Value largest, float limit = 127);
  /// Quantizes a vector to [16 x i32].
  mlir::Value integersOf(KernelBuilder &b, mlir::Value numbers) const;

  mlir::Value scale;   ///< f32: 0 for zeros, infinite or NaN if the input contains such a number
  mlir::Value inverse; ///< reciprocal of the scale, in all lanes
};

/// A row of !mica.int8. Its elements are computed twice, because the scale depends on their maximum
/// magnitude.
class Int8Row {
public:
  /// Computes 16 elements starting at `column` as f32; those after `live` (null: none) are ignored.
  using Compute = llvm::function_ref<mlir::Value(mlir::Value column, mlir::Value live)>;

  /// Emits the scale of `columns` elements; `compute` must outlive the object.
  Int8Row(KernelBuilder &b, int64_t columns, Compute compute);

  /// The integers [16 x i32] of 16 elements starting at `column`, zero after `live`.
  mlir::Value integers(mlir::Value column, mlir::Value live) const;

  /// f32: 0 for a row of zeros, infinite or NaN if the row contains such a number.
  mlir::Value scale;

private:
  mlir::Value values(mlir::Value column, mlir::Value live) const;

  KernelBuilder &b;
  Compute compute;
  std::optional<IntegerScale> integer;
};

/// The maximum magnitude in vectors of f32, as a scalar: infinite or NaN if they contain such a
/// number.
mlir::Value largestMagnitude(KernelBuilder &b, llvm::ArrayRef<mlir::Value> vectors);

/// Stores a 32-bit number in the bytes of `buffer` starting at `at`.
void storeAsBytes(KernelBuilder &b, mlir::Value number, mlir::Value buffer, mlir::ValueRange at);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ROWS_INT8ROW_H
