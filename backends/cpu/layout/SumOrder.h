//===- SumOrder.h - the order in which products are added -------*- C++ -*-===//
//
// What kernels, and the selection among them, agree on: a row's bits must not depend on which of
// them computes it.
//
//===----------------------------------------------------------------------===//
#ifndef MICA_BACKENDS_CPU_LAYOUT_SUMORDER_H
#define MICA_BACKENDS_CPU_LAYOUT_SUMORDER_H

#include "backends/cpu/target/TargetDescription.h"
#include "ir/Entry/Precision.h"

namespace mica::cpu {

/// Whether the target's oneDNN is fast in `type`, F32 or BF16: on AVX2 without AVX-512 its bf16
/// path is not.
bool isLibraryFast(Precision type, const TargetDescription &target);

/// Whether AMX tiles can multiply rows by weights with this precision and k columns: only bf16, in
/// pairs, so k must be even.
bool tilesSupport(Precision weights, int64_t k);

/// The length of the segments along K whose products are summed from zero before the sum is added
/// to that of the previous segments; k if there is only one. For matmuls in `type`, F32 or BF16,
/// with any number of rows: generated kernels use the same segments as oneDNN, so that a row's bits
/// do not depend on which of them computes it. oneDNN's rule is that of
/// compute_blocking_heuristic_avx512 in its brgemm_matmul_utils.cpp, release 3.7; MatmulTest
/// compares the sums. For bf16 on a target with AMX tiles, both add in the order of tdpbf16ps,
/// from the first value to the last.
int64_t sumSegment(Precision type, int64_t k, const TargetDescription &target);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LAYOUT_SUMORDER_H
