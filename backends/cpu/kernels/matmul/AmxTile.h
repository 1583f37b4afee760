//===- AmxTile.h - products in tile registers -------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_AMXTILE_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_AMXTILE_H

#include "backends/cpu/kernels/matmul/ProductRows.h"

namespace mica::cpu {

/// Whether the target's tile registers multiply rows of x [..., k] with such a weight: pairs of
/// bf16, none left over.
bool multipliesInTiles(KernelBuilder &b, mlir::Value x, const WeightSpec &weight);

/// How many panels tile registers should multiply at once: they share the copied rows, and with 256
/// rows their part of K and their sums fit in a second-level cache of 2 MiB.
inline constexpr int64_t kPanelsTogether = 8;

/// Neighboring blocks of a weight, at least one.
struct BlockRun {
  mlir::Value first, count;
  int64_t most; ///< bound of the count
  PanelsOfBlock panelsOf;
};

/// emitBlockSums by tile registers, for a run.
void emitSumsInTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                     const BlockRun &run, StoreBlockSums store);

/// Rows in memory that tile registers multiply by columns of a panel of pairs of bf16. There are
/// whole tiles of kTileRows rows.
struct RowTiles {
  static constexpr int64_t kTileRows = 16;

  mlir::Value x;     ///< bf16 [rows, K]
  mlir::Value tiles; ///< of rows
  mlir::Value steps; ///< of kTileGroups groups along K
  PackedPanel panel;

  /// sums[row, column] = the products of [0, columns), a multiple of 16; `accumulate`: += those.
  void emit(KernelBuilder &b, mlir::Value sums, int64_t columns, bool accumulate) const;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_AMXTILE_H
