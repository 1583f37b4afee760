//===- Tile.h - the inner loop of all matmuls -------------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_TILE_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_TILE_H

#include "backends/cpu/kernels/matmul/ProductTile.h"

namespace mica::cpu {

/// The f32 sums [rows][vectors] of a tile. Products are added in the order of K, whatever the shape
/// of the tile.
llvm::SmallVector<mlir::Value> emitProductTile(KernelBuilder &b, const ProductTile &tile);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_TILE_H
