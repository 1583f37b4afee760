//===- Elements.h - numbers of one type as those of another -----*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_ELEMENTS_H
#define MICA_BACKENDS_CPU_PACK_ELEMENTS_H

#include "backends/cpu/pack/PackPlan.h"

namespace mica::cpu {

/// `count` elements of type `from` at `source`, unaligned, to type `to` at `target`; rounds to
/// nearest even. Returns whether all are finite, also in type `to`.
bool convertElements(const uint8_t *source, WeightType from, uint8_t *target, WeightType to,
                     int64_t count);

/// As convertElements, for `count` elements of a row of the weight from `begin` on, times their
/// factors.
bool convertRow(const SourceRow &row, int64_t begin, int64_t count, uint8_t *target, WeightType to);

/// `count` numbers of a tensor from `source` on, unaligned, as f32. Returns whether all are finite.
bool readElements(const uint8_t *source, const StoredAs &stored, float *values, int64_t count);

/// `row` with its numbers in `scratch`, which has plan.columns, where they are stored in blocks;
/// else as it is.
SourceRow withoutBlocks(const PackPlan &plan, const SourceRow &row, float *scratch);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_ELEMENTS_H
