//===- ProductTile.h - the registers of a matmul's inner loop ---*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTTILE_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTTILE_H

#include "backends/cpu/kernels/matmul/Prefetch.h"

namespace mica::cpu {

/// Groups along K of a panel that one multiplication of tile registers takes.
inline constexpr int64_t kTileGroups = 16;

/// Sums over K for some rows and some columns of a panel.
struct ProductTile {
  mlir::Value x;      ///< the last axis is K
  int64_t k;          ///< extent of K where the panel is quantized
  mlir::Value groups; ///< whole groups of `depth` values along K, or where they end
  bool partial;       ///< one more value follows them
  PackedPanel panel;
  mlir::Value firstColumn;
  int64_t vectors;                                             ///< how many vectors of 16 columns
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> rows = {}; ///< leading indices of x of each row
  llvm::SmallVector<mlir::Value> inits = {}; ///< what the sums start from; empty: zero
  mlir::Value from = {};                     ///< the first of the groups; null: 0
  LinesAhead ahead = {};
  /// Whether pairs are summed as tile registers do it: in each step of kTileGroups groups from
  /// zero, the first and the second values apart. Then there are three accumulators for each sum.
  bool asTiles = false;
  int64_t limbs = 0; ///< of rows of !mica.int_rows
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTTILE_H
