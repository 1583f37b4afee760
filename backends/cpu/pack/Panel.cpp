//===- Panel.cpp - some rows, converted and packed ------------------------===//

#include "backends/cpu/pack/Panel.h"

#include <array>
#include <bit>
#include <cstring>

namespace mica::cpu {

namespace {

template <typename T> T load(const uint8_t *bytes, int64_t index) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T> void store(uint8_t *bytes, int64_t index, T value) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

constexpr uint32_t kInfinity = 0x7f800000, kMagnitude = 0x7fffffff;

uint32_t fromBf16(uint16_t bits) { return uint32_t(bits) << 16; }

/// All 16-bit floats are exact in f32. Exponent and fraction move by 13 bits, and a product with
/// 2^112 corrects the exponent's bias, subnormal numbers included; infinities and NaN get f32's
/// exponent.
uint32_t fromF16(uint16_t bits) {
  uint32_t magnitude = uint32_t(bits & 0x7fff) << 13, sign = uint32_t(bits & 0x8000) << 16;
  uint32_t number = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
  uint32_t special = magnitude | kInfinity;
  return sign | (magnitude >= 0x0f800000 ? special : number);
}

uint16_t toBf16(uint32_t bits) { return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16); }

/// The f32 of each source element by `widen`, stored by `narrow`.
template <typename From, typename To, typename Widen, typename Narrow>
bool convert(const uint8_t *source, uint8_t *target, int64_t count, Widen widen, Narrow narrow) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = widen(load<From>(source, i));
    largest = std::max(largest, bits & kMagnitude);
    store<To>(target, i, narrow(bits));
  }
  return largest <= kInfinity;
}

constexpr auto same = [](uint32_t bits) { return bits; };

template <typename To, typename Narrow>
bool convertTo(const uint8_t *source, WeightType from, uint8_t *target, int64_t count,
               Narrow narrow) {
  switch (from) {
  case WeightType::F32:
    return convert<uint32_t, To>(source, target, count, same, narrow);
  case WeightType::BF16:
    return convert<uint16_t, To>(source, target, count, fromBf16, narrow);
  case WeightType::F16:
    return convert<uint16_t, To>(source, target, count, fromF16, narrow);
  }
  return false;
}

/// bf16 to bf16 keeps every bit.
bool copyBf16(const uint8_t *source, uint8_t *target, int64_t count) {
  return convert<uint16_t, uint16_t>(source, target, count, fromBf16,
                                     [](uint32_t bits) { return uint16_t(bits >> 16); });
}

/// Rows of the panel times lanes: a group along K is one lane of 4 bytes, whatever the element.
constexpr int64_t kTileLanes = 16, kTileRows = kBlockColumns;
using Tile = std::array<std::array<uint32_t, kTileLanes>, kTileRows>;

/// [rows][lanes] => [lanes][rows].
void transpose(const Tile &tile, int64_t lanes, uint8_t *out) {
  for (int64_t lane = 0; lane < lanes; ++lane) {
    std::array<uint32_t, kTileRows> column;
    for (int64_t row = 0; row < kTileRows; ++row)
      column[row] = tile[row][lane];
    std::memcpy(out + lane * sizeof(column), &column, sizeof(column));
  }
}

bool packBlock(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out) {
  int64_t depth = plan.layout.getDepth(),
          lanes = roundUp(plan.columns, plan.layout.getKBlock()) / depth;
  std::array<const uint8_t *, kTileRows> rows{};
  for (int64_t row = 0; row < std::min(kTileRows, plan.rows - firstRow); ++row)
    rows[row] = plan.rowOf(matrix, firstRow + row);
  bool numbers = true;
  for (int64_t lane = 0; lane < lanes; lane += kTileLanes) {
    int64_t begin = lane * depth,
            count = std::clamp<int64_t>(plan.columns - begin, 0, kTileLanes * depth);
    Tile tile{};
    for (int64_t row = 0; row < kTileRows; ++row)
      if (rows[row])
        numbers &= convertElements(rows[row] + begin * sizeOf(plan.from), plan.from,
                                   reinterpret_cast<uint8_t *>(tile[row].data()), plan.to, count);
    transpose(tile, std::min(kTileLanes, lanes - lane), out + lane * kTileRows * sizeof(uint32_t));
  }
  return numbers;
}

} // namespace

bool convertElements(const uint8_t *source, WeightType from, uint8_t *target, WeightType to,
                     int64_t count) {
  if (to == WeightType::F32)
    return convertTo<uint32_t>(source, from, target, count, same);
  if (from == WeightType::BF16)
    return copyBf16(source, target, count);
  return convertTo<uint16_t>(source, from, target, count, toBf16);
}

bool packPanel(const PackPlan &plan, int64_t matrix, int64_t firstRow, uint8_t *out) {
  if (plan.layout)
    return packBlock(plan, matrix, firstRow, out);
  bool numbers = true;
  int64_t rowBytes = plan.columns * sizeOf(plan.to);
  for (int64_t row = firstRow; row < std::min(plan.rows, firstRow + plan.panelRows());
       ++row, out += rowBytes) {
    if (const uint8_t *source = plan.rowOf(matrix, row))
      numbers &= convertElements(source, plan.from, out, plan.to, plan.columns);
    else
      std::memset(out, 0, rowBytes);
  }
  return numbers;
}

} // namespace mica::cpu
