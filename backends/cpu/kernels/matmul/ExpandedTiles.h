//===- ExpandedTiles.h - expanded blocks in tile registers ------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_MATMUL_EXPANDEDTILES_H
#define MICA_BACKENDS_CPU_KERNELS_MATMUL_EXPANDEDTILES_H

#include "backends/cpu/kernels/matmul/ProductRows.h"

namespace mica::cpu {

/// Whether rows of x [..., K] in bf16 meet a weight in blocks on a target with tile registers.
bool expandsForTiles(KernelBuilder &b, mlir::Value x, const WeightSpec &weight);

/// emitBlockSums for these, one block after the other: blocks are expanded to pairs of bf16 a block
/// along K at a time, in groups of up to 64 rows. Sums are added in the order of tdpbf16ps, as
/// oneDNN adds those of more rows on such a target, so that both have the same bits.
void emitSumsOfExpandedTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                             BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_MATMUL_EXPANDEDTILES_H
