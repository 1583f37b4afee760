//===- IntegerPanel.h - some rows as integers, packed ---------------------===//
#ifndef MICA_BACKENDS_CPU_PACK_INTEGERPANEL_H
#define MICA_BACKENDS_CPU_PACK_INTEGERPANEL_H

#include "backends/cpu/pack/PackPlan.h"

namespace mica::cpu {

/// What stands behind the panels of each matrix of integers: an entry per row, 0 where rows are
/// padded.
struct RowTails {
  /// Of no entries where the weight holds no integers.
  explicit RowTails(const PackPlan &plan);

  /// Of the panel of matrix `matrix` that begins at `row`.
  int64_t indexOf(int64_t matrix, int64_t row) const { return matrix * rows + row; }
  /// Writes those of a matrix: plan.tailBytes().
  void write(int64_t matrix, uint8_t *out) const;

  int64_t rows; ///< of a matrix, padded
  std::vector<float> scales;
  std::vector<int32_t> sums;
};

/// packPanel of a weight of integers; the entries of its rows in `tails` as well. Returns false
/// where a number is not finite.
bool packIntegers(const PackPlan &plan, int64_t matrix, int64_t row, uint8_t *out, RowTails &tails);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_INTEGERPANEL_H
