//===- BlockPanel.h - some rows in blocks, packed ---------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_BLOCKPANEL_H
#define MICA_BACKENDS_CPU_PACK_BLOCKPANEL_H

#include "backends/cpu/pack/PackPlan.h"

namespace mica::cpu {

/// packPanel of a weight in blocks: see PackedBlocks. Blocks of files are taken apart, nothing is
/// computed; rows of numbers are quantized to Mica's own formats first.
bool packBlocks(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_BLOCKPANEL_H
