//===- Panel.h - packed values in memory ------------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PANEL_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PANEL_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// A panel of packed values [groups along K][columns][depth] in contiguous memory: a block of a
/// weight or of a cache.
struct PackedPanel {
  mlir::Value memory; ///< rank 1
  mlir::Value offset; ///< in elements
  int64_t columns, depth;
  /// The block format, in which case memory is bytes; null: numbers.
  const BlockFormat *blocks = nullptr;
  /// Whether it is read from memory as part of a stream; null: no.
  mlir::Value streams = {};
};

/// A contiguous buffer as a one-dimensional one.
mlir::Value flatten(KernelBuilder &b, mlir::Value buffer);

/// The panel of a contiguous buffer [..., groups, columns, depth] selected by `leading` indices.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading);

/// The panel [groups, columns, depth] in the last dimension of a contiguous buffer.
PackedPanel panelOf(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading, int64_t columns,
                    int64_t depth);

/// A weight [..., n, k] of a matmul. `element` is its element type in the dialect.
struct WeightSpec {
  int64_t n, k;
  mlir::Type element;
  int64_t rowBits = 0; ///< of integer rows that multiply it; 0: rows of other types

  /// Its block format; null if it contains numbers.
  const BlockFormat *blocks() const { return blockFormatOf(element); }
};

/// The panel of 64 rows of a packed weight selected by `leading` indices (the block, or the expert
/// and the block).
PackedPanel weightPanel(KernelBuilder &b, mlir::Value buffer, mlir::ValueRange leading,
                        const WeightSpec &weight);

/// The number of columns in [0, columns) of a vector that starts at `column`, at least zero; null
/// if blocks of 64 are complete.
mlir::Value liveColumns(KernelBuilder &b, mlir::Value column, int64_t columns);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PANEL_H
