//===- ValuesInKeys.h - values that are the first elements of keys ---*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_VALUESINKEYS_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_VALUESINKEYS_H

#include "backends/cpu/kernels/matmul/Panel.h"

namespace mica::cpu {

/// [elements / depth][positions][depth], a block of keys, becomes [positions / depth][elements]
/// [depth], one of values: as far as rows see it (`liveGroups` of
/// positions), in whole steps of tile registers. `turned` has room for `values` elements of all
/// positions.
void turnValues(KernelBuilder &b, const PackedPanel &keys, mlir::Value liveGroups,
                mlir::Value turned, int64_t values);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_VALUESINKEYS_H
