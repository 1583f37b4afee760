//===- RandomBlocks.h - random blocks of a format ---------------*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_RANDOMBLOCKS_H
#define MICA_TESTS_UNIT_RANDOMBLOCKS_H

#include "ir/Quantize/BlockFormats.h"
#include "ir/Quantize/HalfFloat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <random>
#include <utility>
#include <vector>

namespace mica::test {

/// Names of the formats in tests.
struct FormatName {
  template <typename Info> std::string operator()(const Info &info) const {
    return std::string(info.param->name);
  }
};

inline std::vector<const BlockFormat *> allBlockFormats() {
  std::vector<const BlockFormat *> formats;
  for (const BlockFormat &format : blockFormats())
    formats.push_back(&format);
  return formats;
}

/// Formats of files, whose blocks are preserved.
inline std::vector<const BlockFormat *> storedBlockFormats() {
  std::vector<const BlockFormat *> formats = allBlockFormats();
  std::erase_if(formats, [](const BlockFormat *format) { return format->isOwn; });
  return formats;
}

/// Mica's own formats.
inline std::vector<const BlockFormat *> ownBlockFormats() {
  std::vector<const BlockFormat *> formats = allBlockFormats();
  std::erase_if(formats, [](const BlockFormat *format) { return !format->isOwn; });
  return formats;
}

/// The level of a code.
inline int levelOf(const BlockFormat &format, int code) {
  return format.levels ? format.levels[code] : code - format.bias;
}

/// The largest magnitude of a level.
inline int largestLevel(const BlockFormat &format) {
  int largest = 0;
  for (int code = 0; code < 1 << format.codeBits(); ++code)
    largest = std::max(largest, std::abs(levelOf(format, code)));
  return largest;
}

/// The codes of the smallest and of the largest level.
inline std::pair<uint8_t, uint8_t> extremeCodes(const BlockFormat &format) {
  std::pair<uint8_t, uint8_t> codes{0, 0};
  for (int code = 0; code < 1 << format.codeBits(); ++code) {
    if (levelOf(format, code) < levelOf(format, codes.first))
      codes.first = static_cast<uint8_t>(code);
    if (levelOf(format, code) > levelOf(format, codes.second))
      codes.second = static_cast<uint8_t>(code);
  }
  return codes;
}

/// Positions of extreme levels in a row, by the number of the row.
inline constexpr int kExtremeKinds = 3;

/// The code of element `i` of row `row`: the largest level, the smallest one, or both alternately.
inline uint8_t extremeCode(const BlockFormat &format, int64_t row, int64_t i) {
  auto [smallest, largest] = extremeCodes(format);
  int64_t kind = row % kExtremeKinds;
  return kind == 0 || (kind == 2 && i % 2 == 0) ? largest : smallest;
}

/// The bits of a scale near `value`; for scales of one byte the power of two below it.
inline uint16_t scaleBits(const BlockFormat &format, float value) {
  switch (format.scaleType) {
  case ScaleType::F16: {
    uint16_t best = 0;
    // Half the distance to f16's own value is close enough.
    int exponent;
    float fraction = std::frexp(std::abs(value), &exponent); // in [0.5, 1)
    if (exponent > -14)
      best = static_cast<uint16_t>((exponent + 14) << 10 |
                                   static_cast<int>((fraction - 0.5f) * 2048) % 1024);
    return static_cast<uint16_t>(best | (std::signbit(value) ? 0x8000 : 0));
  }
  case ScaleType::BF16:
    return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
  case ScaleType::E8M0Half: {
    int exponent;
    std::frexp(value, &exponent);
    return static_cast<uint16_t>(std::clamp(exponent + 127, 0, 254));
  }
  }
  return 0;
}

inline void storeScale(const BlockFormat &format, int32_t at, uint16_t bits, uint8_t *block) {
  block[at] = static_cast<uint8_t>(bits);
  if (format.scaleType != ScaleType::E8M0Half)
    block[at + 1] = static_cast<uint8_t>(bits >> 8);
}

/// `count` blocks of random bytes, including scales.
inline std::vector<uint8_t> anyBlocks(const BlockFormat &format, size_t count,
                                      std::mt19937 &random) {
  std::vector<uint8_t> bytes(count * format.bytes);
  for (uint8_t &byte : bytes)
    byte = static_cast<uint8_t>(random() >> 24);
  return bytes;
}

/// `count` blocks: random codes and sub-scales, scales of both signs such that numbers are about in
/// [-1, 1]. Every fifth block has a zero scale (the smallest power of two for formats with such
/// scales), every seventh one a subnormal scale.
inline std::vector<uint8_t> randomBlocks(const BlockFormat &format, size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes = anyBlocks(format, count, random);
  bool isPower = format.scaleType == ScaleType::E8M0Half;
  for (size_t i = 0; i < count; ++i) {
    uint8_t *block = bytes.data() + i * format.bytes;
    BlockParts parts{};
    splitBlock(format, block, parts);
    int subScale = 1, subOffset = 1;
    if (format.hasSubScales())
      for (int32_t group = 0; group < format.groups(); ++group) {
        subScale = std::max(subScale, std::abs(parts.scales[group]));
        subOffset = std::max(subOffset, std::abs(parts.offsets[group]));
      }
    auto draw = [&](int largest) {
      float share = 0.5f + static_cast<float>(random() >> 9) * 0x1p-24f;
      return (random() % 2 && !isPower ? -share : share) / static_cast<float>(largest);
    };
    uint16_t scale = scaleBits(format, draw(subScale * largestLevel(format)));
    if (i % 5 == 4)
      scale = 0;
    else if (i % 7 == 6)
      scale = isPower ? 1 : 0x8003;
    storeScale(format, format.scaleAt, scale, block);
    if (format.hasOffsets())
      storeScale(format, format.offsetAt, scaleBits(format, draw(2 * subOffset)), block);
  }
  return bytes;
}

/// Writes the code of element `i`; see CodePlane.
inline void storeCode(const BlockFormat &format, int i, uint8_t code, uint8_t *block) {
  auto store = [&](const CodePlane &plane, int bits) {
    int n = 8 / plane.width, up = plane.width * (i / plane.stripe % n),
        mask = ((1 << plane.width) - 1) << up;
    uint8_t &byte = block[plane.at + i / (plane.stripe * n) * plane.stripe + i % plane.stripe];
    byte = static_cast<uint8_t>((byte & ~mask) | (bits << up & mask));
  };
  int bits = format.isSigned ? code ^ 0x80 : code;
  store(format.low, bits);
  if (format.high.width != 0)
    store(format.high, bits >> format.low.width);
}

/// `count` blocks of row `row` of a matrix with the codes extremeCode(): scales, sub-scales and
/// offsets are the same for all blocks, such that numbers are about in [-1, 1].
inline std::vector<uint8_t> extremeBlocks(const BlockFormat &format, size_t count, int64_t row) {
  std::vector<uint8_t> block(format.bytes, 0xff);
  BlockParts parts{};
  splitBlock(format, block.data(), parts);
  float subScale = 1, subOffset = 1;
  if (format.hasSubScales()) {
    subScale = parts.scales[0];
    subOffset = format.hasOffsets() ? parts.offsets[0] : 1.0f;
  }
  auto largest = static_cast<float>(largestLevel(format));
  storeScale(format, format.scaleAt, scaleBits(format, 1 / (subScale * largest)), block.data());
  if (format.hasOffsets())
    storeScale(format, format.offsetAt, scaleBits(format, 0.25f / subOffset), block.data());
  for (int i = 0; i < format.elements; ++i)
    storeCode(format, i, extremeCode(format, row, i), block.data());
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < count; ++i)
    bytes.insert(bytes.end(), block.begin(), block.end());
  return bytes;
}

/// `count` numbers of row `row` of a matrix that are quantized to such codes by one of Mica's own
/// formats. The first four of every 32 have other levels, so that any scale but the intended one is
/// worse.
inline std::vector<float> extremeNumbers(const BlockFormat &format, size_t count, int64_t row) {
  auto [smallest, largest] = extremeCodes(format);
  const uint8_t others[] = {smallest, largest, static_cast<uint8_t>(largest / 3),
                            static_cast<uint8_t>(largest / 2)};
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) {
    uint8_t code = i % 32 < 4 ? others[i % 32] : extremeCode(format, row, static_cast<int64_t>(i));
    numbers[i] =
        static_cast<float>(levelOf(format, code)) / static_cast<float>(largestLevel(format));
  }
  return numbers;
}

/// The dequantized numbers of blocks.
inline std::vector<float> decodeAll(const BlockFormat &format, const std::vector<uint8_t> &blocks) {
  size_t count = blocks.size() / format.bytes;
  std::vector<float> values(count * format.elements);
  for (size_t i = 0; i < count; ++i)
    decodeBlock(format, blocks.data() + i * format.bytes, values.data() + i * format.elements);
  return values;
}

} // namespace mica::test

#endif // MICA_TESTS_UNIT_RANDOMBLOCKS_H
