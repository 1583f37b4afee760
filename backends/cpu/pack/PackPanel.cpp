//===- PackPanel.cpp - panels of rows, converted and packed ---------------===//

#include "backends/cpu/pack/PackPanel.h"

#include "backends/cpu/pack/BlockPanel.h"
#include "backends/cpu/pack/Elements.h"
#include "backends/cpu/pack/TransposeLanes.h"

#include <array>
#include <cstring>

namespace mica::cpu {

/// Packs a panel of numbers in the layout of the plan.
static bool packBlock(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out) {
  int64_t depth = plan.layout.getDepth(),
          lanes = roundUp(plan.columns, plan.layout.getKBlock()) / depth;
  std::array<SourceRow, kTileRows> rows{};
  std::vector<float> scratch;
  for (int64_t row = 0; row < std::min(kTileRows, plan.rows - firstRow); ++row) {
    rows[row] = plan.rowOf(matrix, firstRow + row);
    if (rows[row].stored.blocks) // decode rows once, because tiles are narrower than blocks
      scratch.resize(kTileRows * plan.columns);
    rows[row] =
        withoutBlocks(plan, rows[row], scratch.data() + (scratch.empty() ? 0 : row * plan.columns));
  }
  bool finite = true;
  for (int64_t lane = 0; lane < lanes; lane += kTileLanes) {
    int64_t begin = lane * depth,
            count = std::clamp<int64_t>(plan.columns - begin, 0, kTileLanes * depth);
    uint8_t tile[kTileRows][kTileLanes * sizeof(uint32_t)] = {};
    for (int64_t row = 0; row < kTileRows; ++row)
      if (rows[row].bytes)
        finite &= convertRow(rows[row], begin, count, tile[row], plan.to);
    transposeLanes(tile[0], sizeof tile[0], std::min(kTileLanes, lanes - lane),
                   out + lane * kTileRows * sizeof(uint32_t));
  }
  return finite;
}

bool packPanel(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out) {
  if (plan.blocks())
    return packBlocks(plan, matrix, firstRow, out);
  if (plan.layout)
    return packBlock(plan, matrix, firstRow, out);
  bool finite = true;
  int64_t rowBytes = plan.columns * sizeOf(plan.to);
  std::vector<float> scratch(plan.columns);
  for (int64_t row = firstRow; row < std::min(plan.rows, firstRow + plan.panelRows());
       ++row, out += rowBytes) {
    SourceRow source = withoutBlocks(plan, plan.rowOf(matrix, row), scratch.data());
    if (source.bytes)
      finite &= convertRow(source, 0, plan.columns, out, plan.to);
    else
      std::memset(out, 0, rowBytes);
  }
  return finite;
}

} // namespace mica::cpu
