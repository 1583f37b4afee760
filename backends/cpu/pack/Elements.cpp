//===- Elements.cpp - conversion of element types -------------------------===//

#include "backends/cpu/pack/Elements.h"

#include "ir/Quantize/HalfFloat.h"

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

uint16_t toBf16(uint32_t bits) { return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16); }

/// Converts each source element to f32 by `widen`, and stores it by `narrow`. Returns whether all
/// stored elements are finite; `narrow` is monotonic, so it is sufficient to check the largest.
template <typename From, typename To, typename Widen, typename Narrow>
bool convert(const uint8_t *source, uint8_t *target, int64_t count, Widen widen, Narrow narrow) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits = widen(load<From>(source, i));
    largest = std::max(largest, bits & kMagnitude);
    store<To>(target, i, narrow(bits));
  }
  return uint32_t(narrow(largest)) << (32 - 8 * sizeof(To)) < kInfinity;
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

/// Preserves every bit.
bool copyBf16(const uint8_t *source, uint8_t *target, int64_t count) {
  return convert<uint16_t, uint16_t>(source, target, count, fromBf16,
                                     [](uint32_t bits) { return uint16_t(bits >> 16); });
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

bool convertRow(const SourceRow &row, int64_t begin, int64_t count, uint8_t *target,
                WeightType to) {
  WeightType from = row.stored.type;
  int64_t size = sizeOf(from);
  if (row.offset == 0 && row.factor == 1 && !row.factors)
    return convertElements(row.bytes + begin * size, from, target, to, count);
  bool finite = true;
  std::array<float, 64> piece;
  for (int64_t i = 0; i < count; i += piece.size()) {
    int64_t length = std::min<int64_t>(piece.size(), count - i);
    auto *bytes = reinterpret_cast<uint8_t *>(piece.data());
    finite &= convertElements(row.bytes + (begin + i) * size, from, bytes, WeightType::F32, length);
    for (int64_t j = 0; j < length; ++j)
      piece[j] = (piece[j] + row.offset) *
                 (row.factors ? row.factor * row.factors[begin + i + j] : row.factor);
    finite &= convertElements(bytes, WeightType::F32, target + i * sizeOf(to), to, length);
  }
  return finite;
}

bool readElements(const uint8_t *source, const StoredAs &stored, float *values, int64_t count) {
  auto *bytes = reinterpret_cast<uint8_t *>(values);
  if (!stored.blocks)
    return convertElements(source, stored.type, bytes, WeightType::F32, count);
  for (int64_t i = 0; i < count; i += stored.blocks.elements())
    decodeBlock(*stored.blocks.format, source + stored.bytesOf(i), values + i);
  return convertElements(bytes, WeightType::F32, bytes, WeightType::F32, count);
}

SourceRow withoutBlocks(const PackPlan &plan, const SourceRow &row, float *scratch) {
  if (!row.stored.blocks)
    return row;
  readElements(row.bytes, row.stored, scratch, plan.columns);
  SourceRow numbers = row;
  numbers.bytes = reinterpret_cast<const uint8_t *>(scratch);
  numbers.stored = {WeightType::F32};
  return numbers;
}

} // namespace mica::cpu
