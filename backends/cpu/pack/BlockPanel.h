//===- BlockPanel.h - panels of block-quantized weights ---------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_BLOCKPANEL_H
#define MICA_BACKENDS_CPU_PACK_BLOCKPANEL_H

#include "backends/cpu/pack/PackPlan.h"

namespace mica::cpu {

/// packPanel for block-quantized weights; see PackedBlocks. Blocks of files are only rearranged;
/// rows of floats are quantized to Mica's own formats first.
bool packBlocks(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_BLOCKPANEL_H
