//===- CostModel.h - kernel selection and tiling ----------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_DISPATCH_COSTMODEL_H
#define MICA_BACKENDS_CPU_DISPATCH_COSTMODEL_H

#include "backends/cpu/target/TargetDescription.h"
#include "passes/support/Phases.h"
#include "passes/support/Precision.h"

namespace mica::cpu {

/// A matmul of `rows` rows and a weight [n, k].
struct ProductShape {
  int64_t rows, n, k;
  Precision weights = Precision::F32; ///< precision of the multiplication; unused if `blocks`
  /// Whether integers have a scale for each group along K, which must be applied within the sum:
  /// neither libraries nor AMX tiles support this.
  bool blocks = false;
  /// Whether blocks are expanded to floats: a library reads the expanded weights from the cache for
  /// all rows; generated kernels expand them again for every 64 rows.
  bool expands = false;
};

/// Parameters of the choice besides the shape. Those that do not depend on the target are the
/// defaults of the passes' options.
struct KernelCosts {
  /// The maximum number of rows for which generated kernels, which read weights once at full memory
  /// bandwidth, are selected for all shapes. For the shape of a Llama with 1 billion parameters on
  /// 2 threads of a Zen 4, they were 1.2 times as fast as oneDNN in bf16 at 17 rows and equally
  /// fast at 32 (`bench --prompt N`).
  int64_t gemmThreshold = PhaseRows().gemmThreshold;
  /// The assumed number of rows of a call of a function for many rows.
  int64_t largeBatch = 64;
  /// Whether generated kernels use AMX tiles for bf16. They are faster than oneDNN for the numbers
  /// of rows in prefill: for the shape of a Llama with 1 billion parameters on 2 threads of a Xeon
  /// with AMX, 512 rows took 1/1.2 of the time (`bench --prompt N`).
  bool tiles = false;
  /// Multiply-adds below which a library call does not pay off. A call costs about 5 us
  /// (descriptors, waking the pool), generated kernels reach about 100 GFLOP/s at these sizes where
  /// oneDNN reaches 500: 5 us * 2 / (1/100 - 1/500) per GFLOP/s is 0.6 MFLOP, hence a quarter of a
  /// million multiply-adds.
  int64_t minWork = 262144;
  /// Whether the target's oneDNN is fast in a format (`isLibraryFast`).
  bool onednnF32 = true;
  bool onednnBf16 = true;

  /// The costs on `target`; defaults for everything that does not depend on it.
  static KernelCosts of(const TargetDescription &target);
};

/// The type of exact activations multiplied by block-quantized weights in prefill on `target`.
ExactRows exactRowsOn(const TargetDescription &target);

/// Selects the kernel of a matmul.
KernelKind chooseKernel(const ProductShape &shape, const KernelCosts &costs);

/// Attention of query heads that share a key/value head.
struct AttentionShape {
  bool smallBatch; ///< one or a few rows per call, as in decode
  int64_t group;   ///< query heads per key/value head
};

/// Selects the tiling of attention.
AttentionTilingAttr chooseTiling(const AttentionShape &shape, mlir::MLIRContext *context);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DISPATCH_COSTMODEL_H
