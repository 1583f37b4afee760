//===- IntegerRows.h - rows of integers in registers ------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_INTEGERROWS_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_INTEGERROWS_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// The element that is word `i` of a row of 16 bits, if kernels multiply words
/// (TargetDescription::usesWords): then the two planes of IntegerRowLayout are one plane of words,
/// the integers themselves. Of four consecutive elements, the first and the third are adjacent,
/// then the other two, because the even and the odd bytes of a quad of codes become words.
inline int64_t wordOfRow(int64_t i) {
  constexpr int64_t order[] = {0, 2, 1, 3};
  return i / 4 * 4 + order[i % 4];
}

/// Reads rows of !mica.int_rows from a buffer whose last dimension contains their bytes. Rows are
/// selected by their leading indices. Chunks are groups of 32 elements with a common scale.
class IntegerRows {
public:
  IntegerRows(KernelBuilder &b, mlir::Value x, int64_t bits, int64_t k)
      : b(b), x(x), layout(bits, k) {}

  using Row = llvm::ArrayRef<mlir::Value>;

  /// The f32 scale of a chunk.
  mlir::Value loadScale(Row row, mlir::Value chunk) const;
  /// Minus the sum of the integers in group `group` of the `groups` of a chunk, i32.
  mlir::Value loadNegativeSum(Row row, mlir::Value chunk, int64_t group, int64_t groups) const;
  /// The f32 sum of the values, from the negative sum of their integers.
  mlir::Value sumOf(mlir::Value negative, mlir::Value scale) const;
  /// Four bytes in all lanes [64 x i8]: quad `quad` of a chunk in a plane; the high bytes are plane
  /// 0.
  mlir::Value loadQuad(Row row, mlir::Value chunk, int64_t plane, mlir::Value quad) const;
  /// Two words in all lanes [32 x i16]: pair `pair` of a chunk of words.
  mlir::Value loadPair(Row row, mlir::Value chunk, mlir::Value pair) const;

private:
  mlir::Value loadScalar(Row row, mlir::Value byte, mlir::Type element) const;
  mlir::Value loadInEachLane(Row row, mlir::Value byte) const;

  KernelBuilder &b;
  mlir::Value x;
  IntegerRowLayout layout;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_INTEGERROWS_H
