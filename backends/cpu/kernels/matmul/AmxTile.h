//===- AmxTile.h - matmuls with AMX tiles -----------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_AMXTILE_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_AMXTILE_H

#include "backends/cpu/kernels/matmul/ProductRows.h"

namespace mica::cpu {

/// Whether AMX tiles can multiply rows of x [..., k] by this weight: both must be bf16, in complete
/// pairs.
bool multipliesInTiles(KernelBuilder &b, mlir::Value x, const WeightSpec &weight);

/// The number of panels that AMX tiles should multiply at once: they share the copied rows, and
/// with 256 rows, their part of K and their sums fit in an L2 cache of 2 MiB.
inline constexpr int64_t kPanelsTogether = 8;

/// Consecutive blocks of a weight, at least one.
struct BlockRun {
  mlir::Value first, count;
  int64_t maxCount; ///< maximum of the count
  PanelsOfBlock panelsOf;
};

/// emitBlockSums for a run, with AMX tiles.
void emitSumsInTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                     const BlockRun &run, StoreBlockSums store);

/// Rows in memory that AMX tiles multiply by columns of a panel of pairs of bf16. There are whole
/// tiles of kTileRows rows.
struct RowTiles {
  static constexpr int64_t kTileRows = 16;

  mlir::Value x;     ///< bf16 [rows, K]
  mlir::Value tiles; ///< number of row tiles
  mlir::Value steps; ///< of kTileGroups groups along K
  PackedPanel panel;

  /// sums[row, column] = the matmul with columns [0, columns), a multiple of 16; `accumulate`: +=.
  void emit(KernelBuilder &b, mlir::Value sums, int64_t columns, bool accumulate) const;
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_AMXTILE_H
