//===- Elements.h - conversion of element types -----------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_ELEMENTS_H
#define MICA_BACKENDS_CPU_PACK_ELEMENTS_H

#include "backends/cpu/pack/PackPlan.h"

namespace mica::cpu {

/// Converts `count` elements of type `from` at `source`, which may be unaligned, to type `to` at
/// `target`, rounding to nearest even. Returns whether all elements are finite before and after.
bool convertElements(const uint8_t *source, WeightType from, uint8_t *target, WeightType to,
                     int64_t count);

/// As convertElements, for `count` elements of a row of a weight beginning at `begin`, with its
/// offset and factors applied.
bool convertRow(const SourceRow &row, int64_t begin, int64_t count, uint8_t *target, WeightType to);

/// Reads `count` elements of a tensor at `source`, which may be unaligned, as f32. Returns whether
/// all are finite.
bool readElements(const uint8_t *source, const StoredAs &stored, float *values, int64_t count);

/// If `row` is block-quantized, decodes it to `scratch` [plan.columns] and returns the decoded row;
/// else returns `row`.
SourceRow withoutBlocks(const PackPlan &plan, const SourceRow &row, float *scratch);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_ELEMENTS_H
