//===- LimbRows.h - rows of f32 that meet bytes -----------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_LIMBROWS_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_LIMBROWS_H

#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// Rows on the stack that are multiplied by panels of signed bytes, as integers of 15 or 16 bits:
/// each number is `scale * (high + low / ratio)` in two limbs of 8 bits, with one scale per row.
/// Sums of products of integers are exact, in whatever order they are taken, and cost half of what
/// products of f32 do.
/// Only for targets with int8Dot.
class LimbRows {
public:
  /// Whether numbers have signs: their limbs are signed then, and the panel's bytes are shifted to
  /// [0, 255]. (One side of the instruction is signed, the other one not.)
  enum class Signs { None, Both };

  /// `k` is a multiple of 16.
  LimbRows(KernelBuilder &b, int64_t rows, int64_t k, Signs signs);

  /// Makes a row of k / 16 vectors. A number that is none makes none of the whole row.
  void store(mlir::Value row, llvm::ArrayRef<mlir::Value> numbers);

  /// Products of the rows [first, first + count) with 16 `vectors` columns of `panel` over its
  /// first `groups` groups: f32 [rows][vectors].
  llvm::SmallVector<mlir::Value> multiply(const PackedPanel &panel, mlir::Value groups,
                                          mlir::Value first, int64_t count, mlir::Value column,
                                          int64_t vectors);

  /// Accumulators per row and vector.
  static constexpr int64_t kLimbs = 2;

private:
  /// Four bytes of a limb of a row, as often as fit a vector.
  mlir::Value loadQuad(mlir::Value row, int64_t limb, mlir::Value group);
  /// How many units of the high limb's the largest magnitude of a row is.
  float unit() const { return signs == Signs::Both ? 127.0f : 65535.0f / 256; }
  /// Units of the low limb in one of the high limb: the most that a byte has room for.
  float ratio() const { return signs == Signs::Both ? 254.0f : 256.0f; }

  KernelBuilder &b;
  int64_t k;
  Signs signs;
  mlir::Value bytes, scales; ///< [rows][limbs * k], [rows]
  mlir::Value starts;        ///< i32 [rows][limbs]: what sums start from where panels are shifted
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_LIMBROWS_H
