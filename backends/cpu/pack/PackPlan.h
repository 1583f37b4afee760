//===- PackPlan.h - which row comes from where ------------------*- C++ -*-===//
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
  float offset = 0;               ///< added to all elements, before
  float factor = 1;               ///< of all elements
  const float *factors = nullptr; ///< of each element; null for 1
  StoredAs stored = {WeightType::F32};
  const float *importance = nullptr; ///< of each element's error; null: all the same
};

/// Consecutive rows of a weight that are consecutive rows of one source, or zero.
struct RowRun {
  int64_t begin;         ///< first row of the weight, counted over all its matrices
  const uint8_t *source; ///< of that row; null for zeros
  float rowOffset = 0;
  const float *rowFactors = nullptr;    ///< from that row on; null for 1
  const float *columnFactors = nullptr; ///< null for 1
  StoredAs stored = {WeightType::F32};
  const float *importance = nullptr; ///< see SourceRow
};

/// How one weight is made. A weight is a stack of matrices [rows, columns]; a vector [N] is one
/// matrix [N, 1].
struct PackPlan {
  int64_t matrices = 1, rows = 0, columns = 0;
  WeightType to = WeightType::F32;
  PackedLayoutAttr layout;  ///< null for row-major
  mlir::Type element;       ///< of the weight
  std::vector<RowRun> runs; ///< sorted, the first at row 0
  llvm::SmallVector<mlir::Attribute> sources;

  /// The format of the weight's blocks; null for floats.
  const BlockFormat *blocks() const { return blockFormatOf(element); }

  /// Rows that are packed together: a block of columns of the product, or some rows of a plain
  /// matrix.
  int64_t panelRows() const;
  int64_t panelsPerMatrix() const { return (rows + panelRows() - 1) / panelRows(); }
  /// Bytes of the panel that begins at `row` of a matrix, padding included.
  int64_t panelBytes(int64_t row) const;
  /// Bytes of all.
  int64_t bytes() const;
  /// Row `row` of matrix `matrix`.
  SourceRow rowOf(int64_t matrix, int64_t row) const;
};

/// Errors name the weight and the source: a source is missing, or its shape does not fit into the
/// weight.
llvm::Expected<PackPlan> planWeight(WeightOp weight, const PartSource &source);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_PACKPLAN_H
