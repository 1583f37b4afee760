//===- CostModel.cpp - generated kernel or library ----------------------------===//

#include "passes/Kernels/CostModel.h"

using namespace mica;

KernelKind mica::chooseKernel(const ProductShape &shape, const KernelCosts &costs) {
  bool fast = shape.weights == Precision::F32    ? costs.onednnF32
              : shape.weights == Precision::BF16 ? costs.onednnBf16
                                                 : costs.onednnInt8;
  if (!fast)
    return KernelKind::Generated;
  // In floating point: the product of three large extents may exceed 64 bits.
  double work =
      static_cast<double>(shape.rows) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
  return work < static_cast<double>(costs.minWork) ? KernelKind::Generated : KernelKind::OneDnn;
}
