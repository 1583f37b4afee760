//===- PackPlan.h - the sources of a packed weight's rows -------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_PACKPLAN_H
#define MICA_BACKENDS_CPU_PACK_PACKPLAN_H

#include "backends/cpu/pack/WeightSource.h"
#include "ir/Mica/Mica.h"

#include <optional>
#include <vector>

namespace mica::cpu {

/// A row of a source.
struct SourceRow {
  const uint8_t *bytes = nullptr; ///< null for zeros
  float offset = 0;               ///< added to all elements before scaling
  float factor = 1;               ///< factor of all elements
  const float *factors = nullptr; ///< [columns] factors of elements; null: 1
  StoredAs stored = {WeightType::F32};
  const float *importance = nullptr; ///< [columns] weights of quantization errors; null: equal
};

/// Consecutive rows of a weight that are consecutive rows of one source, or zero.
struct SourceRun {
  int64_t begin;         ///< first row of the weight, counted over all its matrices
  const uint8_t *source; ///< data of that row; null for zeros
  float rowOffset = 0;
  const float *rowFactors = nullptr;    ///< beginning with that row; null: 1
  const float *columnFactors = nullptr; ///< null for 1
  StoredAs stored = {WeightType::F32};
  const float *importance = nullptr; ///< see SourceRow
};

/// How a weight is composed and packed. A weight is a stack of matrices [rows, columns]; a vector
/// [N] is one matrix [N, 1].
struct PackPlan {
  int64_t matrices = 1, rows = 0, columns = 0;
  WeightType to = WeightType::F32;
  PackedLayoutAttr layout;     ///< null for row-major
  mlir::Type element;          ///< of the weight
  std::vector<SourceRun> runs; ///< sorted, the first at row 0
  /// Parts of sources that are not contiguous in them; `runs` refers to these.
  std::vector<std::vector<uint8_t>> copies;
  std::vector<std::vector<float>> factorCopies;
  llvm::SmallVector<mlir::Attribute> sources;

  /// The format of the weight's blocks; null for floats.
  const BlockFormat *blocks() const { return blockFormatOf(element); }

  /// The number of rows that are packed together: those of a panel, or some rows of a matrix that
  /// is not packed.
  int64_t panelRows() const;
  int64_t panelsPerMatrix() const { return (rows + panelRows() - 1) / panelRows(); }
  /// Bytes of the panel that begins at `row` of a matrix, padding included.
  int64_t panelBytes(int64_t row) const;
  /// The total size in bytes.
  int64_t bytes() const;
  /// Of these, those that fill groups of rows that are packed together.
  int64_t paddingBytes() const;
  /// Row `row` of matrix `matrix`.
  SourceRow rowOf(int64_t matrix, int64_t row) const;
};

/// Plans the packing of a weight; if it is partitioned, of the part of `rank`. Fails if a source is
/// missing or its shape does not match the weight; errors name both.
llvm::Expected<PackPlan> planWeight(WeightOp weight, const PartSource &source, int64_t rank = 0);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_PACKPLAN_H
