//===- ProductTile.h - the registers of a matmul's inner loop ---*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTTILE_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTTILE_H

#include "backends/cpu/kernels/matmul/Prefetch.h"

namespace mica::cpu {

/// Groups along K of a panel that one AMX tile multiplication takes.
inline constexpr int64_t kTileGroups = 16;

/// Sums over K for some rows and some columns of a panel.
struct ProductTile {
  mlir::Value x;      ///< the last dimension is K
  int64_t k;          ///< extent of K if the panel is quantized
  mlir::Value groups; ///< number of complete groups of `depth` values along K, or their end
  bool partial;       ///< whether another value follows them
  PackedPanel panel;
  mlir::Value firstColumn;
  int64_t vectors;                                             ///< vectors of 16 columns
  llvm::SmallVector<llvm::SmallVector<mlir::Value>> rows = {}; ///< leading indices in x of each row
  llvm::SmallVector<mlir::Value> inits = {};                   ///< initial sums; empty: zero
  mlir::Value from = {};                                       ///< the first group; null: 0
  LinesAhead ahead = {};
  /// Whether pairs are summed in the order of AMX tiles: each step of kTileGroups groups from zero,
  /// the first and the second values separately. This needs three accumulators for each sum.
  bool asTiles = false;
  int64_t rowBits = 0; ///< of rows of !mica.int_rows
};

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_PRODUCTTILE_H
