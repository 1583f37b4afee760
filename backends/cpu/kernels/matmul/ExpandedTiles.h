//===- ExpandedTiles.h - expanded blocks in AMX tiles -----------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_EXPANDEDTILES_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_EXPANDEDTILES_H

#include "backends/cpu/kernels/matmul/ProductRows.h"

namespace mica::cpu {

/// Whether x [..., K] is bf16, the weight is block-quantized, and the target has AMX tiles.
bool expandsForTiles(KernelBuilder &b, mlir::Value x, const WeightSpec &weight);

/// emitBlockSums for this case: blocks are expanded to pairs of bf16, one block along K at a time,
/// for groups of up to 64 rows. Sums have the order of tdpbf16ps, which oneDNN uses for more rows
/// on such a target, so that both have the same bits.
void emitSumsOfExpandedTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                             BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_EXPANDEDTILES_H
