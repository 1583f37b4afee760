//===- PackPanel.h - panels of rows, converted and packed -------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_PACKPANEL_H
#define MICA_BACKENDS_CPU_PACK_PACKPANEL_H

#include "backends/cpu/pack/PackPlan.h"

namespace mica::cpu {

/// Writes the panel of matrix `matrix` that begins at `row`, a multiple of plan.panelRows(), to
/// `out`: exactly plan.panelBytes(row) bytes, including padding. Returns false if an element is not
/// finite.
bool packPanel(const PackPlan &plan, int64_t matrix, int64_t row, uint8_t *out);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_PACKPANEL_H
