//===- CostModel.h - kernel selection and tiling ----------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_DISPATCH_COSTMODEL_H
#define MICA_BACKENDS_CPU_DISPATCH_COSTMODEL_H

#include "backends/cpu/target/TargetDescription.h"
#include "passes/support/Phases.h"
#include "passes/support/Precision.h"

namespace mica::cpu {

/// A product of `rows` rows with a weight [n, k].
struct ProductShape {
  int64_t rows, n, k;
  Precision weights = Precision::F32; ///< as they are multiplied
  /// Whether integers have a scale for each group along K, which must be applied inside the sum:
  /// neither a library nor tile registers can.
  bool blocks = false;
  /// Whether blocks are expanded to floats: a library reads those of all rows from the cache,
  /// generated kernels expand them again for every 64 rows.
  bool expands = false;
};

/// Whether tile registers multiply rows with weights of that precision and k columns: pairs of
/// bf16, none left over.
bool tilesSupport(Precision weights, int64_t k);

/// What the choice depends on besides the shape. The defaults of the passes' options are these, of
/// what is not the target's.
struct KernelCosts {
  /// The most rows for which generated kernels, which read weights once at the memory's bandwidth,
  /// are taken whatever the shape. At the shape of a Llama with 1 billion parameters, 2 threads of
  /// a Zen 4, they were 1.2 times as fast as oneDNN in bf16 at 17 rows and as fast at 32
  /// (`bench --prompt N`).
  int64_t gemmThreshold = PhaseRows().gemmThreshold;
  /// Rows that a call of a function for many rows is assumed to have.
  int64_t manyRows = 64;
  /// Whether generated kernels multiply pairs of bf16 in tile registers, which beat oneDNN's at the
  /// numbers of rows that prompts are read in: at the shape of a Llama with 1 billion parameters, 2
  /// threads of a Xeon with AMX, 512 rows at once took 1/1.2 of the time (`bench --prompt N`).
  bool tiles = false;
  /// Multiply-adds below which a library call does not pay. A call costs about 5 us (descriptors,
  /// waking the pool), generated kernels reach about 100 GFLOP/s at these sizes where oneDNN
  /// reaches 500: 5 us * 2 / (1/100 - 1/500) per GFLOP/s is 0.6 MFLOP, hence a quarter of a million
  /// multiply-adds.
  int64_t minWork = 262144;
  /// Whether the target's oneDNN is fast in a format: on AVX2 without AVX-512 its bf16 path is not.
  bool onednnF32 = true;
  bool onednnBf16 = true;

  /// The costs on `target`; what does not depend on it has the defaults.
  static KernelCosts of(const TargetDescription &target);
};

/// What exact rows of prompts are on `target` where they multiply weights in blocks.
ExactRows exactRowsOn(const TargetDescription &target);

/// Which kernel computes a product.
KernelKind chooseKernel(const ProductShape &shape, const KernelCosts &costs);

/// Values along K whose products are summed from zero, before the sum is added to that of the
/// values before them; k where all are summed at once. For products in `type`, F32 or BF16, of any
/// number of rows: generated kernels add as oneDNN does, so that a row's bits do not depend on
/// which of them computes it. oneDNN's rule is that of compute_blocking_heuristic_avx512 in its
/// brgemm_matmul_utils.cpp, release 3.7; MatmulTest compares the sums. In bf16 on a target with
/// tile registers all add in the order of tdpbf16ps, from the first to the last value.
int64_t sumSegment(Precision type, int64_t k, const TargetDescription &target);

/// Attention of query heads that share a key/value head.
struct AttentionShape {
  bool fewRows;  ///< a row or a few per call, as in decoding
  int64_t group; ///< query heads per key/value head
};

/// How attention is cut.
AttentionTilingAttr chooseTiling(const AttentionShape &shape, mlir::MLIRContext *context);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DISPATCH_COSTMODEL_H
