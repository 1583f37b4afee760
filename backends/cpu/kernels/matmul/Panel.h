//===- Panel.h - packed values in memory ------------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PANEL_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PANEL_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// A panel of packed values [groups along K][columns][depth] in contiguous memory: a block of a
/// weight, or of a cache.
struct PackedPanel {
  mlir::Value memory; ///< rank 1
  mlir::Value offset; ///< of the panel, in elements
  int64_t columns, depth;
  /// The format of a weight's blocks, whose memory are bytes; null: of numbers.
  const BlockFormat *blocks = nullptr;
  /// Whether its reader brings it from memory, as a part of a stream; null: no.
  mlir::Value streams = {};
};

/// A contiguous buffer as one row of memory.
mlir::Value flatten(KernelBuilder &b, mlir::Value buffer);

/// The panel of a contiguous buffer [..., groups, columns, depth] that `leading` indices select.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading);

/// The panel [groups, columns, depth] that is the last axis of a contiguous buffer of any extents.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading, int64_t columns,
                    int64_t depth);

/// A weight [..., n, k] of a product. `element` is its element type in the dialect.
struct WeightSpec {
  int64_t n, k;
  mlir::Type element;
  int64_t limbs = 0; ///< of rows of integers that multiply it; 0: rows of other types

  /// The format of its blocks; null: it holds numbers.
  const BlockFormat *blocks() const { return blockFormatOf(element); }
};

/// The panel of 64 rows of a packed weight that `leading` indices (the block, or the expert and the
/// block) select.
PackedPanel weightPanel(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading,
                        const WeightSpec &weight);

/// How many of [0, columns) a vector at `column` covers, at least zero; null where blocks of 64 are
/// whole.
mlir::Value liveColumns(KernelBuilder &b, mlir::Value column, int64_t columns);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PANEL_H
