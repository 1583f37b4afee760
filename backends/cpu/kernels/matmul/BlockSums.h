//===- BlockSums.h - matmuls of rows with blocks of a weight ----*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKSUMS_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKSUMS_H

#include "backends/cpu/kernels/matmul/ProductRows.h"

namespace mica::cpu {

/// Matmul of all rows and the columns of the blocks' panels, which belong to a weight with the
/// shape and element type of `weight`. Uses vectors or the target's AMX tiles.
void emitBlockSums(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                   BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKSUMS_H
