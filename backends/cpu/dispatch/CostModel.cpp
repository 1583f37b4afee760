//===- CostModel.cpp - kernel selection and tiling ------------------------===//

#include "backends/cpu/dispatch/CostModel.h"

#include <algorithm>

using namespace mica;
using namespace mica::cpu;

bool mica::cpu::tilesSupport(Precision weights, int64_t k) {
  return weights == Precision::BF16 && k % 2 == 0;
}

KernelCosts KernelCosts::of(const TargetDescription &target) {
  KernelCosts costs;
  costs.tiles = target.tiles;
  // oneDNN's blocked kernels need AVX-512; below, generated kernels take all products.
  costs.onednnF32 = target.vectorBits == 512;
  costs.onednnBf16 = target.vectorBits == 512 && target.bf16Dot;
  return costs;
}

ExactRows mica::cpu::exactRowsOn(const TargetDescription &target) {
  // Where there are no products of bf16, those of 16-bit integers are faster than those of f32.
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

int64_t mica::cpu::sumSegment(Precision type, int64_t k, const TargetDescription &target) {
  KernelCosts costs = KernelCosts::of(target);
  bool byLibrary = type == Precision::F32 ? costs.onednnF32 : costs.onednnBf16 && !costs.tiles;
  constexpr int64_t wide = 1024, narrow = 512;
  return byLibrary ? std::min(k, k > wide ? wide : narrow) : k;
}

AttentionTilingAttr mica::cpu::chooseTiling(const AttentionShape &shape,
                                            mlir::MLIRContext *context) {
  // Both phases must use the same chunks, because these affect how sums are rounded. A chunk of 512
  // positions takes some microseconds, compared with which the overhead of a task is small.
  constexpr int64_t chunk = 512;
  // Where very many query heads share keys and values, a task takes some of them: enough that what
  // it does with a block costs more than its loads, and few enough for all threads to have work and
  // for what a task remembers to fit the second-level cache.
  constexpr int64_t minHeads = 4, maxHeads = 16;
  int64_t group = shape.group, heads = 0;
  if (group > maxHeads)
    for (int64_t part = minHeads; part <= maxHeads; ++part)
      if (group % part == 0)
        heads = part;
  if (heads > 0)
    group = heads;
  // Few rows: the tasks are as small as possible, because there are few of them.
  if (shape.fewRows)
    return AttentionTilingAttr::get(context, 1, chunk, /*split=*/true, heads);
  // Many rows: a block of keys and values is loaded once for some 32 query heads, which is enough
  // for products to cost more than the loads; with more, the rows of a tile differ more in what
  // they see. Multiples of 4 rows fill the register tiles whatever the group.
  constexpr int64_t headsOfTile = 32, minRows = 4, maxRows = 16;
  int64_t rows = std::clamp(headsOfTile / group / 4 * 4, minRows, maxRows);
  return AttentionTilingAttr::get(context, rows, chunk, /*split=*/false, heads);
}
