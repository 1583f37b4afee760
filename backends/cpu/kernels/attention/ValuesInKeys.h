//===- ValuesInKeys.h - values that are a prefix of keys --------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_VALUESINKEYS_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_VALUESINKEYS_H

#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// Transposes a block of keys, [elements / depth][positions][depth], to a block of values,
/// [positions / depth][elements][depth]: the first `liveGroups` groups of positions, rounded up to
/// whole steps of AMX tiles. `transposed` has memory for `values` elements of all positions.
void transposeValues(KernelBuilder &b, const PackedPanel &keys, mlir::Value liveGroups,
                     mlir::Value transposed, int64_t values);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_VALUESINKEYS_H
