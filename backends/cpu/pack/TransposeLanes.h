//===- TransposeLanes.h - transposing rows to lanes -------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_PACK_TRANSPOSELANES_H
#define MICA_BACKENDS_CPU_PACK_TRANSPOSELANES_H

#include "ir/Mica/Mica.h"

#include <array>
#include <cstring>

namespace mica::cpu {

/// The size of a transposed tile: rows of a panel by lanes. A lane is a group along K, 4 bytes for
/// every element type.
inline constexpr int64_t kTileLanes = 16, kTileRows = kBlockColumns;

/// [rows][stride bytes] => [lanes][rows]: `lanes`, at most 16, of each row.
inline void transposeLanes(const uint8_t *rows, int64_t stride, int64_t lanes, uint8_t *out) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::array<uint32_t, kTileRows> column;
    for (int64_t row = 0; row < kTileRows; ++row)
      std::memcpy(&column[row], rows + row * stride + lane * sizeof(uint32_t), sizeof(uint32_t));
    std::memcpy(out + lane * sizeof(column), &column, sizeof(column));
  }
}

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_PACK_TRANSPOSELANES_H
