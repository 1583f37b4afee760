//===- CostModel.cpp - kernel selection and tiling ------------------------===//

#include "backends/cpu/dispatch/CostModel.h"

#include "backends/cpu/layout/SumOrder.h"

using namespace mica;
using namespace mica::cpu;

KernelCosts KernelCosts::of(const TargetDescription &target) {
  KernelCosts costs;
  costs.tiles = target.tiles;
  costs.onednnF32 = isLibraryFast(Precision::F32, target);
  costs.onednnBf16 = isLibraryFast(Precision::BF16, target);
  return costs;
}

ExactRows mica::cpu::exactRowsOn(const TargetDescription &target) {
  // Without bf16 dot products, dot products of 16-bit integers are faster than f32.
  return target.usesWords() ? ExactRows::Int16 : ExactRows::BF16;
}

KernelKind mica::cpu::chooseKernel(const ProductShape &shape, const KernelCosts &costs) {
  if (shape.blocks || shape.rows <= costs.gemmThreshold ||
      (costs.tiles && !shape.expands && tilesSupport(shape.weights, shape.k)))
    return KernelKind::Generated;
  if (!(shape.weights == Precision::F32 ? costs.onednnF32 : costs.onednnBf16))
    return KernelKind::Generated;
  // In floating point: the product of three large extents may exceed 64 bits.
  double work =
      static_cast<double>(shape.rows) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  return work < static_cast<double>(costs.minWork) ? KernelKind::Generated : KernelKind::OneDnn;
}

AttentionTilingAttr mica::cpu::chooseTiling(const AttentionShape &shape,
                                            mlir::MLIRContext *context) {
  // Both phases must use the same chunks, because these affect how sums are rounded. A chunk of 512
  // positions takes several microseconds; the overhead of a task is small in comparison.
  constexpr int64_t chunk = 512;
  // If very many query heads share keys and values, a task processes some of them: enough that the
  // computation per block costs more than its loads, but few enough that there is work for all
  // threads and the state of a task fits the L2 cache.
  constexpr int64_t minHeads = 4, maxHeads = 16;
  int64_t group = shape.group, heads = 0;
  if (group > maxHeads)
    for (int64_t part = minHeads; part <= maxHeads; ++part)
      if (group % part == 0)
        heads = part;
  if (heads > 0)
    group = heads;
  // Decode: use the smallest tasks, because there are few of them.
  if (shape.smallBatch)
    return AttentionTilingAttr::get(context, 1, chunk, /*split=*/true, heads);
  // Prefill: a block of keys and values is loaded once for about 32 query heads, enough that
  // matmuls cost more than the loads; with more, the attended positions of a tile's rows differ
  // more. Multiples of 4 rows fill the register tiles for any group size.
  constexpr int64_t headsOfTile = 32, minRows = 4, maxRows = 16;
  int64_t rows = std::clamp(headsOfTile / group / 4 * 4, minRows, maxRows);
  return AttentionTilingAttr::get(context, rows, chunk, /*split=*/false, heads);
}
