//===- BlockSums.h - products of rows with blocks of a weight ---*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKSUMS_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKSUMS_H

#include "backends/cpu/kernels/matmul/ProductRows.h"

namespace mica::cpu {

/// Products of all rows with the columns of the blocks' panels, which are of a weight of the shape
/// and element type of `weight`. By vectors, or by the target's tile registers.
void emitBlockSums(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                   BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_BLOCKSUMS_H
