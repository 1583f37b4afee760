//===- HighLowRows.h - f32 rows as integers for byte dot products ---------===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_HIGHLOWROWS_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_HIGHLOWROWS_H

#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// Rows on the stack that are multiplied by panels of signed bytes, as 15-bit or 16-bit integers: a
/// value is `scale * (high + low / ratio)` with two 8-bit halves and one scale per row. Sums of
/// integer products are exact in any order, and cost half as much as f32 products. Only for targets
/// with int8Dot.
class HighLowRows {
public:
  /// Whether values are signed: then their halves are signed, and the panel's bytes are shifted to
  /// [0, 255]. (The instruction multiplies unsigned by signed bytes.)
  enum class Signs { None, Both };

  /// `k` is a multiple of 16.
  HighLowRows(KernelBuilder &b, int64_t rows, int64_t k, Signs signs);

  /// Converts a row of k / 16 vectors. A NaN makes the whole row NaN.
  void store(mlir::Value row, llvm::ArrayRef<mlir::Value> numbers);

  /// Matmul of the rows [first, first + count) and 16 * `vectors` columns of `panel` over its first
  /// `groups` groups: f32 [rows][vectors].
  llvm::SmallVector<mlir::Value> multiply(const PackedPanel &panel, mlir::Value groups,
                                          mlir::Value first, int64_t count, mlir::Value column,
                                          int64_t vectors);

  /// Accumulators per row and vector.
  static constexpr int64_t kHalves = 2;

private:
  /// Loads four bytes of a half of a row, repeated to fill a vector.
  mlir::Value loadQuad(mlir::Value row, int64_t half, mlir::Value group);
  /// The largest magnitude of a row in units of the high half.
  float unit() const { return signs == Signs::Both ? 127.0f : 65535.0f / 256; }
  /// Units of the low half per unit of the high half: the maximum that fits in a byte.
  float ratio() const { return signs == Signs::Both ? 254.0f : 256.0f; }

  KernelBuilder &b;
  int64_t k;
  Signs signs;
  mlir::Value bytes, scales; ///< [rows][halves * k], [rows]
  mlir::Value starts;        ///< i32 [rows][halves]: initial values of sums if panels are shifted
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_HIGHLOWROWS_H
