#include "frontend/gguf/TensorTypes.h"

#include "ir/Mica/HalfFloat.h"

#include "llvm/ADT/StringExtras.h"

#include <bit>
#include <cstring>

namespace mica {
namespace {

/// The parts of a block, read from its begin to its end.
class Parts {
public:
  explicit Parts(const uint8_t *block) : at(block) {}

  const uint8_t *bytes(size_t count) { return std::exchange(at, at + count); }
  uint16_t half() {
    const uint8_t *part = bytes(2);
    return static_cast<uint16_t>(part[0] | part[1] << 8);
  }
  /// The f32 of an f16.
  float number() { return std::bit_cast<float>(fromF16(half())); }

private:
  const uint8_t *at;
};

/// The low halves of 16 bytes are the first 16 integers, the high halves the others.
int nibbleOf(const uint8_t *bytes, int i) { return i < 16 ? bytes[i] & 15 : bytes[i - 16] >> 4; }

/// The fifth bits of 32 integers.
uint32_t fifthBits(Parts &parts) {
  const uint8_t *bits = parts.bytes(4);
  return bits[0] | bits[1] << 8 | bits[2] << 16 | uint32_t(bits[3]) << 24;
}

uint16_t splitQ4_0(const uint8_t *block, int8_t *integers) {
  Parts parts(block);
  uint16_t scale = parts.half();
  const uint8_t *q = parts.bytes(16);
  for (int i = 0; i < 32; ++i)
    integers[i] = static_cast<int8_t>(nibbleOf(q, i) - 8);
  return scale;
}

uint16_t splitQ8_0(const uint8_t *block, int8_t *integers) {
  Parts parts(block);
  uint16_t scale = parts.half();
  std::memcpy(integers, parts.bytes(32), 32);
  return scale;
}

template <auto split> void decodeIntegers(const uint8_t *block, float *values) {
  int8_t integers[32];
  float scale = std::bit_cast<float>(fromF16(split(block, integers)));
  for (int i = 0; i < 32; ++i)
    values[i] = scale * static_cast<float>(integers[i]);
}

void decodeQ4_1(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = parts.number(), least = parts.number();
  const uint8_t *q = parts.bytes(16);
  for (int i = 0; i < 32; ++i)
    values[i] = scale * static_cast<float>(nibbleOf(q, i)) + least;
}

void decodeQ5_0(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = parts.number();
  uint32_t high = fifthBits(parts);
  const uint8_t *q = parts.bytes(16);
  for (int i = 0; i < 32; ++i)
    values[i] = scale * static_cast<float>((nibbleOf(q, i) | int(high >> i & 1) << 4) - 16);
}

void decodeQ5_1(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = parts.number(), least = parts.number();
  uint32_t high = fifthBits(parts);
  const uint8_t *q = parts.bytes(16);
  for (int i = 0; i < 32; ++i)
    values[i] = scale * static_cast<float>(nibbleOf(q, i) | int(high >> i & 1) << 4) + least;
}

/// Sixteen groups of 16 integers of 2 bits: each group has a scale and an offset of 4 bits.
void decodeQ2_K(const uint8_t *block, float *values) {
  Parts parts(block);
  const uint8_t *scales = parts.bytes(16), *q = parts.bytes(64);
  float scale = parts.number(), offset = parts.number();
  for (int i = 0; i < 256; ++i) {
    // A half of the block is 32 bytes, a quarter of that half are two bits of each.
    int half = i / 128, quarter = i % 128 / 32;
    uint8_t group = scales[i / 16];
    float step = scale * static_cast<float>(group & 15),
          below = offset * static_cast<float>(group >> 4);
    values[i] = step * static_cast<float>(q[32 * half + i % 32] >> 2 * quarter & 3) - below;
  }
}

/// The 6 bits of the scale of group `group` of 16: four bits in the first eight bytes, two behind.
int scaleOfQ3_K(const uint8_t *scales, int group) {
  int low = group < 8 ? scales[group] & 15 : scales[group - 8] >> 4;
  return (low | (scales[8 + group % 4] >> 2 * (group / 4) & 3) << 4) - 32;
}

void decodeQ3_K(const uint8_t *block, float *values) {
  Parts parts(block);
  const uint8_t *high = parts.bytes(32), *q = parts.bytes(64), *scales = parts.bytes(12);
  float scale = parts.number();
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, quarter = i % 128 / 32;
    float step = scale * static_cast<float>(scaleOfQ3_K(scales, i / 16));
    int low = q[32 * half + i % 32] >> 2 * quarter & 3, isHigh = high[i % 32] >> i / 32 & 1;
    values[i] = step * static_cast<float>(low - (isHigh ? 0 : 4));
  }
}

/// Scale and offset of a group of 32, of 6 bits each in 12 bytes: four groups stand plainly, the
/// high bits of the other four are in the high bits of those.
struct GroupOf32 {
  GroupOf32(const uint8_t *scales, int group) {
    if (group < 4) {
      scale = scales[group] & 63;
      offset = scales[group + 4] & 63;
    } else {
      scale = (scales[group + 4] & 15) | (scales[group - 4] >> 6) << 4;
      offset = scales[group + 4] >> 4 | (scales[group] >> 6) << 4;
    }
  }
  int scale, offset;
};

void decodeQ4_K(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = parts.number(), offset = parts.number();
  const uint8_t *scales = parts.bytes(12), *q = parts.bytes(128);
  for (int i = 0; i < 256; ++i) {
    GroupOf32 group(scales, i / 32);
    float step = scale * static_cast<float>(group.scale),
          below = offset * static_cast<float>(group.offset);
    values[i] = step * static_cast<float>(q[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15) - below;
  }
}

void decodeQ5_K(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = parts.number(), offset = parts.number();
  const uint8_t *scales = parts.bytes(12), *high = parts.bytes(32), *q = parts.bytes(128);
  for (int i = 0; i < 256; ++i) {
    GroupOf32 group(scales, i / 32);
    float step = scale * static_cast<float>(group.scale),
          below = offset * static_cast<float>(group.offset);
    int low = q[i / 64 * 32 + i % 32] >> i / 32 % 2 * 4 & 15, bit = high[i % 32] >> i / 32 & 1;
    values[i] = step * static_cast<float>(low | bit << 4) - below;
  }
}

/// Sixteen groups of 16 integers of 6 bits with a signed scale each.
void decodeQ6_K(const uint8_t *block, float *values) {
  Parts parts(block);
  const uint8_t *low = parts.bytes(128), *high = parts.bytes(64), *scales = parts.bytes(16);
  float scale = parts.number();
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, quarter = i % 128 / 32;
    float step = scale * static_cast<float>(static_cast<int8_t>(scales[i / 16]));
    int four = low[64 * half + i % 64] >> 4 * (quarter / 2) & 15,
        two = high[32 * half + i % 32] >> 2 * quarter & 3;
    values[i] = step * static_cast<float>((four | two << 4) - 32);
  }
}

/// What the 16 integers of IQ4 stand for.
constexpr int8_t unevenSteps[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                    1,    13,   25,  38,  53,  69,  89,  113};

void decodeIQ4_NL(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = parts.number();
  const uint8_t *q = parts.bytes(16);
  for (int i = 0; i < 32; ++i)
    values[i] = scale * static_cast<float>(unevenSteps[nibbleOf(q, i)]);
}

/// Eight groups of 32, whose scales have four bits in one place and two in another.
void decodeIQ4_XS(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = parts.number();
  int high = parts.half();
  const uint8_t *low = parts.bytes(4), *q = parts.bytes(128);
  for (int i = 0; i < 256; ++i) {
    int group = i / 32, four = low[group / 2] >> group % 2 * 4 & 15, two = high >> 2 * group & 3;
    float step = scale * static_cast<float>((four | two << 4) - 32);
    values[i] = step * static_cast<float>(unevenSteps[nibbleOf(q + 16 * group, i % 32)]);
  }
}

/// Twice what the 16 numbers of E2M1 stand for.
constexpr int8_t doubledE2M1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Half of 2^(e - 127), the two smallest of which are subnormal.
float halfPower(uint8_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000u << e : uint32_t(e - 1) << 23);
}

void decodeMXFP4(const uint8_t *block, float *values) {
  Parts parts(block);
  float scale = halfPower(*parts.bytes(1));
  const uint8_t *q = parts.bytes(16);
  for (int i = 0; i < 32; ++i)
    values[i] = scale * static_cast<float>(doubledE2M1[nibbleOf(q, i)]);
}

constexpr TensorType types[] = {
    {0, "F32", 1, 4},
    {1, "F16", 1, 2},
    {2, "Q4_0", 32, 18, decodeIntegers<splitQ4_0>, 4, splitQ4_0},
    {3, "Q4_1", 32, 20, decodeQ4_1},
    {6, "Q5_0", 32, 22, decodeQ5_0},
    {7, "Q5_1", 32, 24, decodeQ5_1},
    {8, "Q8_0", 32, 34, decodeIntegers<splitQ8_0>, 8, splitQ8_0},
    {9, "Q8_1", 32, 40},
    {10, "Q2_K", 256, 84, decodeQ2_K},
    {11, "Q3_K", 256, 110, decodeQ3_K},
    {12, "Q4_K", 256, 144, decodeQ4_K},
    {13, "Q5_K", 256, 176, decodeQ5_K},
    {14, "Q6_K", 256, 210, decodeQ6_K},
    {15, "Q8_K", 256, 292},
    {16, "IQ2_XXS", 256, 66},
    {17, "IQ2_XS", 256, 74},
    {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},
    {20, "IQ4_NL", 32, 18, decodeIQ4_NL},
    {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},
    {23, "IQ4_XS", 256, 136, decodeIQ4_XS},
    {24, "I8", 1, 1},
    {25, "I16", 1, 2},
    {26, "I32", 1, 4},
    {27, "I64", 1, 8},
    {28, "F64", 1, 8},
    {29, "IQ1_M", 256, 56},
    {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54},
    {35, "TQ2_0", 256, 66},
    {39, "MXFP4", 32, 17, decodeMXFP4},
    {40, "NVFP4", 64, 36},
    {41, "Q1_0", 128, 18},
};

} // namespace

const TensorType *tensorTypeNumbered(uint32_t number) {
  for (const TensorType &type : types)
    if (type.number == number)
      return &type;
  return nullptr;
}

const TensorType &mxfp4Type() { return *tensorTypeNumbered(39); }

void joinMxfp4(const uint8_t *pairs, uint8_t scale, uint8_t *block) {
  auto number = [&](int i) { return pairs[i / 2] >> 4 * (i % 2) & 15; };
  block[0] = scale;
  for (int i = 0; i < 16; ++i)
    block[1 + i] = static_cast<uint8_t>(number(i) | number(i + 16) << 4);
}

std::string readableTypeNames() {
  std::string names = "F32, F16, BF16";
  for (const TensorType &type : types)
    if (type.decode)
      names += (", " + type.name).str();
  return names;
}

void decodeBlocks(const TensorType &type, const uint8_t *blocks, uint64_t count, float *values) {
  for (uint64_t i = 0; i < count; ++i)
    type.decode(blocks + i * type.bytes, values + i * type.elements);
}

} // namespace mica
