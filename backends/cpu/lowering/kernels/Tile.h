//===- Tile.h - the inner loop of all products --------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_LOWERING_KERNELS_TILE_H
#define MICA_BACKENDS_CPU_LOWERING_KERNELS_TILE_H

#include "backends/cpu/lowering/KernelBuilder.h"

namespace mica::cpu {

/// A panel of packed values [groups along K][columns][depth] in contiguous memory: a block of a
/// weight, or of a cache.
struct PackedPanel {
  mlir::Value memory; ///< rank 1
  mlir::Value offset; ///< of the panel, in elements
  int64_t columns, depth;
  // Of a block of a quantised weight, whose memory are bytes:
  mlir::Type quantized = {};          ///< !mica.int8 or !mica.int4, else null
  mlir::Value scales = {}, sums = {}; ///< where those of the block's rows stand, in bytes
};

/// The panel of a contiguous buffer [..., groups, columns, depth] that `leading` indices select.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading);

/// The panel [groups, columns, depth] that is the last axis of a contiguous buffer of any extents.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading, int64_t columns,
                    int64_t depth);

/// A weight [..., n, k] of a product. `element` is its element type in the dialect.
struct WeightSpec {
  int64_t n, k;
  mlir::Type element;
};

/// The panel of 64 rows of a packed weight that `leading` indices (the block, or the expert and the
/// block) select.
PackedPanel weightPanel(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading,
                        const WeightSpec &weight);

/// Sums over K for some rows and some columns of one or more panels of the same shape.
struct ProductTile {
  mlir::Value x;      ///< the last axis is K
  int64_t k;          ///< extent of K where the panels are quantised
  mlir::Value groups; ///< whole groups of `depth` values along K
  bool partial;       ///< one more value follows them
  llvm::SmallVector<PackedPanel> panels;
  mlir::Value firstColumn;
  int64_t vectors;                                             ///< how many vectors of 16 columns
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> rows = {}; ///< leading indices of x of each row
  llvm::SmallVector<mlir::Value> inits = {}; ///< what the sums start from; empty: zero

  /// The sums [panels][rows][vectors]. Each adds its products in the order of K, whatever the
  /// tile's shape.
  llvm::SmallVector<mlir::Value> emit(KernelBuilder &b) const;
};

/// A tile over all of K = `k`. Where the panels are quantised, x holds quantised rows.
ProductTile tileOver(KernelBuilder &b, mlir::Value x, int64_t k,
                     llvm::SmallVector<PackedPanel> panels, mlir::Value firstColumn,
                     int64_t vectors);

/// How many of [0, columns) a vector at `column` covers, at least zero; null where blocks of 64 are
/// whole.
mlir::Value liveColumns(KernelBuilder &b, mlir::Value column, int64_t columns);

/// Covers rows [from, to) by tiles of at most 8 rows and calls `body(first row, rows, vectors)`
/// such that rows * vectors * streams accumulators for weights of `element` fit the registers.
/// `body` covers all 64 columns in steps of `vectors`.
void eachRowTile(KernelBuilder &b, mlir::Value from, mlir::Value to, int64_t streams,
                 mlir::Type element, llvm::function_ref<void(mlir::Value, int64_t, int64_t)> body);

/// ProductTile::emit for quantised panels: sums of integers, exact in any order, and the scales
/// of both sides at the end. The results are f32.
llvm::SmallVector<mlir::Value> emitIntegerTile(KernelBuilder &b, const ProductTile &tile);

/// float(sum - 128 * sumsOf(weight)) * scale of x * scale of the weight: what every product of
/// integers ends with, so that results do not depend on who computed the sum. Vectors of 16.
mlir::Value dequantize(KernelBuilder &b, mlir::Value sum, mlir::Value correction,
                       mlir::Value rowScale, mlir::Value columnScales);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_KERNELS_TILE_H
