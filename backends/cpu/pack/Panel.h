//===- Panel.h - some rows, converted and packed ----------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_PANEL_H
#define MICA_BACKENDS_CPU_PACK_PANEL_H

#include "backends/cpu/pack/PackPlan.h"

namespace mica::cpu {

/// Writes the panel of matrix `matrix` that begins at `row`, a multiple of plan.panelRows(), to
/// `out`: plan.panelBytes(row) bytes, every one of them. Returns false where a number is
/// not finite.
bool packPanel(const PackPlan &plan, int64_t matrix, int64_t row, uint8_t *out);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_PANEL_H
