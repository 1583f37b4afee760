//===- BlockFormats.cpp - block quantization formats ----------------------===//

#include "ir/Quantize/BlockFormats.h"

#include "ir/Quantize/HalfFloat.h"

#include <algorithm>
#include <bit>

namespace mica {
namespace {

/// The sixteen levels of IQ4_NL and IQ4_XS.
constexpr int8_t kIq4Levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                   1,    13,   25,  38,  53,  69,  89,  113};

/// The sixteen values of E2M1, times two.
constexpr int8_t kDoubledE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Q2_K: a byte for each group of 16, with the scale in the low and the offset in the high half.
void readQ2K(const uint8_t *block, BlockParts &parts) {
  for (int i = 0; i < 16; ++i) {
    parts.scales[i] = static_cast<int8_t>(block[i] & 15);
    parts.offsets[i] = static_cast<int8_t>(block[i] >> 4);
  }
}

/// Q3_K: 6 bits for each group of 16, stored plus 32; the low four bits are in the first eight
/// bytes, the high two in the following four.
void readQ3K(const uint8_t *block, BlockParts &parts) {
  const uint8_t *bytes = block + 96;
  for (int i = 0; i < 16; ++i) {
    int low = i < 8 ? bytes[i] & 15 : bytes[i - 8] >> 4;
    int high = bytes[8 + i % 4] >> 2 * (i / 4) & 3;
    parts.scales[i] = static_cast<int8_t>((low | high << 4) - 32);
  }
}

/// Q4_K and Q5_K: 6 bits for scale and offset of each group of 32, in 12 bytes: the first eight
/// bytes hold four groups, and in their two upper bits the upper bits of the other four groups,
/// whose lower bits are in the last four bytes.
void readQ4K(const uint8_t *block, BlockParts &parts) {
  const uint8_t *bytes = block + 4;
  for (int i = 0; i < 4; ++i) {
    parts.scales[i] = static_cast<int8_t>(bytes[i] & 63);
    parts.offsets[i] = static_cast<int8_t>(bytes[i + 4] & 63);
    parts.scales[i + 4] = static_cast<int8_t>((bytes[i + 8] & 15) | bytes[i] >> 6 << 4);
    parts.offsets[i + 4] = static_cast<int8_t>(bytes[i + 8] >> 4 | bytes[i + 4] >> 6 << 4);
  }
}

/// Q6_K: a signed byte for each group of 16.
void readQ6K(const uint8_t *block, BlockParts &parts) {
  for (int i = 0; i < 16; ++i)
    parts.scales[i] = static_cast<int8_t>(block[192 + i]);
}

/// IQ4_XS: 6 bits for each group of 32, stored plus 32; the high two bits are in bytes 2 and 3, the
/// low four in the bytes after them.
void readIq4Xs(const uint8_t *block, BlockParts &parts) {
  int high = block[2] | block[3] << 8;
  for (int i = 0; i < 8; ++i) {
    int low = block[4 + i / 2] >> i % 2 * 4 & 15;
    parts.scales[i] = static_cast<int8_t>((low | (high >> 2 * i & 3) << 4) - 32);
  }
}

/// int4_g32: after scale and offset, eight bytes of sub-scales, then eight of sub-offsets.
void readInt4G32(const uint8_t *block, BlockParts &parts) {
  for (int i = 0; i < 8; ++i) {
    parts.scales[i] = static_cast<int8_t>(block[4 + i]);
    parts.offsets[i] = static_cast<int8_t>(block[12 + i]);
  }
}

/// int8_g32 and int6_g32: after the scale, eight bytes of sub-scales.
void readScaleBytes(const uint8_t *block, BlockParts &parts) {
  for (int i = 0; i < 8; ++i)
    parts.scales[i] = static_cast<int8_t>(block[2 + i]);
}

constexpr BlockFormat kFormats[] = {
    {.name = "q4_0", .elements = 32, .bytes = 18, .group = 32, .low = {2, 4, 16}, .bias = 8},
    {.name = "q4_1",
     .elements = 32,
     .bytes = 20,
     .group = 32,
     .low = {4, 4, 16},
     .offsetAt = 2,
     .offsetSign = 1},
    {.name = "q5_0",
     .elements = 32,
     .bytes = 22,
     .group = 32,
     .low = {6, 4, 16},
     .high = {2, 1, 1},
     .bias = 16},
    {.name = "q5_1",
     .elements = 32,
     .bytes = 24,
     .group = 32,
     .low = {8, 4, 16},
     .high = {4, 1, 1},
     .offsetAt = 2,
     .offsetSign = 1},
    {.name = "q8_0",
     .elements = 32,
     .bytes = 34,
     .group = 32,
     .low = {2, 8, 1},
     .bias = 128,
     .isSigned = true},
    {.name = "q2_k",
     .elements = 256,
     .bytes = 84,
     .group = 16,
     .low = {16, 2, 32},
     .scaleAt = 80,
     .offsetAt = 82,
     .offsetSign = -1,
     .subScaleType = SubScaleType::Nibbles,
     .readSubScales = readQ2K},
    {.name = "q3_k",
     .elements = 256,
     .bytes = 110,
     .group = 16,
     .low = {32, 2, 32},
     .high = {0, 1, 32},
     .bias = 4,
     .scaleAt = 108,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readQ3K},
    {.name = "q4_k",
     .elements = 256,
     .bytes = 144,
     .group = 32,
     .low = {16, 4, 32},
     .offsetAt = 2,
     .offsetSign = -1,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readQ4K},
    {.name = "q5_k",
     .elements = 256,
     .bytes = 176,
     .group = 32,
     .low = {48, 4, 32},
     .high = {16, 1, 32},
     .offsetAt = 2,
     .offsetSign = -1,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readQ4K},
    {.name = "q6_k",
     .elements = 256,
     .bytes = 210,
     .group = 16,
     .low = {0, 4, 64},
     .high = {128, 2, 32},
     .bias = 32,
     .scaleAt = 208,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readQ6K},
    {.name = "iq4_nl",
     .elements = 32,
     .bytes = 18,
     .group = 32,
     .low = {2, 4, 16},
     .levels = kIq4Levels},
    {.name = "iq4_xs",
     .elements = 256,
     .bytes = 136,
     .group = 32,
     .low = {8, 4, 16},
     .levels = kIq4Levels,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readIq4Xs},
    {.name = "mxfp4",
     .elements = 32,
     .bytes = 17,
     .group = 32,
     .low = {1, 4, 16},
     .levels = kDoubledE2M1,
     .scaleType = ScaleType::E8M0Half},
    {.name = "int8_g32",
     .elements = 256,
     .bytes = 266,
     .group = 32,
     .low = {10, 8, 1},
     .bias = 128,
     .isSigned = true,
     .scaleType = ScaleType::BF16,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readScaleBytes,
     .isOwn = true},
    {.name = "int6_g32",
     .elements = 256,
     .bytes = 202,
     .group = 32,
     .low = {10, 4, 16},
     .high = {138, 2, 8},
     .bias = 32,
     .scaleType = ScaleType::BF16,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readScaleBytes,
     .isOwn = true},
    {.name = "int4_g32",
     .elements = 256,
     .bytes = 148,
     .group = 32,
     .low = {20, 4, 16},
     .scaleType = ScaleType::BF16,
     .offsetAt = 2,
     .offsetSign = -1,
     .subScaleType = SubScaleType::Bytes,
     .readSubScales = readInt4G32,
     .isOwn = true},
};

/// Whether PackedBlocks can store the format: blocks of whole chunks, and sub-scales for whole
/// groups of each chunk.
constexpr bool isPackable(const BlockFormat &format) {
  constexpr int64_t chunk = PackedBlocks::kChunk;
  return format.elements % chunk == 0 &&
         (format.subScaleType == SubScaleType::None || chunk % format.group == 0);
}
static_assert(std::ranges::all_of(kFormats, isPackable));

uint16_t load16(const uint8_t *bytes) { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }

/// ORs the plane's bits, shifted left by `up`, into the codes.
void readPlane(const BlockFormat &format, const CodePlane &plane, const uint8_t *block, int up,
               uint8_t *codes) {
  if (plane.width == 0)
    return;
  int perByte = 8 / plane.width, mask = (1 << plane.width) - 1;
  for (int begin = 0; begin < format.elements; begin += plane.stripe) {
    int run = begin / plane.stripe, down = plane.width * (run % perByte);
    const uint8_t *bytes = block + plane.at + run / perByte * plane.stripe;
    for (int i = 0; i < plane.stripe; ++i)
      codes[begin + i] |= static_cast<uint8_t>((bytes[i] >> down & mask) << up);
  }
}

} // namespace

std::span<const BlockFormat> blockFormats() { return kFormats; }

const BlockFormat *blockFormatNamed(std::string_view name) {
  for (const BlockFormat &format : kFormats)
    if (format.name == name)
      return &format;
  return nullptr;
}

PackedBlocks::PackedBlocks(const BlockFormat &format)
    : chunks(format.elements / kChunk), scaleBytes(format.scaleType == ScaleType::E8M0Half ? 1 : 2),
      offsetAt(kColumns * scaleBytes),
      headerBytes(offsetAt + (format.hasOffsets() ? kColumns * scaleBytes : 0)),
      groups(format.hasSubScales() ? kChunk / format.group : 0), subOffsetAt(groups * kColumns) {
  bool apart = format.hasOffsets() && format.subScaleType == SubScaleType::Bytes;
  linesAt = subOffsetAt + (apart ? groups * kColumns : 0);
  lowWidth = format.low.width;
  highWidth = format.high.width;
  chunkBytes = linesAt + (lowWidth + highWidth) * kLineBytes;
  blockBytes = headerBytes + chunks * chunkBytes;
}

int64_t PackedBlocks::lowLineAt(int64_t line) const {
  int64_t highBefore = highWidth == 0 ? 0 : line * highWidth / lowWidth + 1;
  return linesAt + (line + highBefore) * kLineBytes;
}

int64_t PackedBlocks::highLineAt(int64_t line) const {
  int64_t lowBefore = (line * lowWidth + highWidth - 1) / highWidth;
  return linesAt + (line + lowBefore) * kLineBytes;
}

int64_t PackedBlocks::bytesOf(int64_t k) const {
  int64_t all = (k + kChunk - 1) / kChunk, rest = all % chunks;
  return all / chunks * blockBytes + (rest ? headerBytes + rest * chunkBytes : 0);
}

void splitBlock(const BlockFormat &format, const uint8_t *block, BlockParts &parts) {
  for (int i = 0; i < format.elements; ++i)
    parts.codes[i] = 0;
  readPlane(format, format.low, block, 0, parts.codes);
  readPlane(format, format.high, block, format.low.width, parts.codes);
  if (format.isSigned)
    for (int i = 0; i < format.elements; ++i)
      parts.codes[i] ^= 0x80;
  parts.scale = format.scaleType == ScaleType::E8M0Half ? block[format.scaleAt]
                                                        : load16(block + format.scaleAt);
  parts.offset = format.hasOffsets() ? load16(block + format.offsetAt) : uint16_t(0);
  if (format.readSubScales)
    format.readSubScales(block, parts);
}

/// Stores bits [down, down + width) of the codes in a plane.
static void writePlane(const BlockFormat &format, const CodePlane &plane, const uint8_t *codes,
                       int down, uint8_t *block) {
  if (plane.width == 0)
    return;
  int perByte = 8 / plane.width, mask = (1 << plane.width) - 1;
  for (int i = 0; i < format.elements; ++i) {
    int run = i / plane.stripe, up = plane.width * (run % perByte);
    uint8_t &byte = block[plane.at + run / perByte * plane.stripe + i % plane.stripe];
    byte = static_cast<uint8_t>((byte & ~(mask << up)) | (codes[i] >> down & mask) << up);
  }
}

static void store16(uint16_t bits, uint8_t *bytes) {
  bytes[0] = static_cast<uint8_t>(bits);
  bytes[1] = static_cast<uint8_t>(bits >> 8);
}

void joinBlock(const BlockFormat &format, const BlockParts &parts, uint8_t *block) {
  uint8_t codes[kMaxBlockElements];
  for (int i = 0; i < format.elements; ++i)
    codes[i] = static_cast<uint8_t>(format.isSigned ? parts.codes[i] ^ 0x80 : parts.codes[i]);
  writePlane(format, format.low, codes, 0, block);
  writePlane(format, format.high, codes, format.low.width, block);
  store16(parts.scale, block + format.scaleAt);
  if (format.hasOffsets())
    store16(parts.offset, block + format.offsetAt);
  // Sub-scales follow the scale and offset at the beginning of a block.
  uint8_t *at = block + (format.hasOffsets() ? 4 : 2);
  if (!format.hasSubScales())
    return;
  for (int i = 0; i < format.groups(); ++i)
    *at++ = static_cast<uint8_t>(parts.scales[i]);
  for (int i = 0; format.hasOffsets() && i < format.groups(); ++i)
    *at++ = static_cast<uint8_t>(parts.offsets[i]);
}

float scaleOf(const BlockFormat &format, uint16_t bits) {
  switch (format.scaleType) {
  case ScaleType::F16:
    return std::bit_cast<float>(fromF16(bits));
  case ScaleType::BF16:
    return std::bit_cast<float>(uint32_t(bits) << 16);
  case ScaleType::E8M0Half: // The two smallest values are subnormal.
    return std::bit_cast<float>(bits < 2 ? 0x00200000u << bits : uint32_t(bits - 1) << 23);
  }
  return 0;
}

void decodeBlock(const BlockFormat &format, const uint8_t *block, float *values) {
  BlockParts parts = {};
  splitBlock(format, block, parts);
  float scale = scaleOf(format, parts.scale), offset = scaleOf(format, parts.offset);
  for (int group = 0; group < format.groups(); ++group) {
    float step = scale, shift = 0;
    if (format.hasSubScales())
      step = scale * static_cast<float>(parts.scales[group]);
    if (format.hasOffsets())
      shift = format.hasSubScales() ? offset * static_cast<float>(parts.offsets[group]) : offset;
    for (int i = group * format.group; i < (group + 1) * format.group; ++i) {
      int level = format.levels ? format.levels[parts.codes[i]] : parts.codes[i] - format.bias;
      float product = step * static_cast<float>(level);
      values[i] = !format.hasOffsets()    ? product
                  : format.offsetSign > 0 ? product + shift
                                          : product - shift;
    }
  }
}

} // namespace mica
