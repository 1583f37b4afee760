//===- BlockTile.h - integer rows times block-quantized weights -*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKTILE_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKTILE_H

#include "backends/cpu/kernels/matmul/ProductTile.h"

namespace mica::cpu {

/// emitProductTile for panels of !mica.block and rows of !mica.int_rows: integer sums within a
/// group, multiplied by both scales in f32, one group after the other. Groups along K are blocks.
llvm::SmallVector<mlir::Value> emitBlockTile(KernelBuilder &b, const ProductTile &tile);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKTILE_H
