//===- BlockFormatsTest.cpp - the table of block formats ------------------===//

#include "ir/Quantize/ScaleRange.h"
#include "tests/unit/Paths.h"
#include "tests/unit/RandomBlocks.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

using namespace mica;
using namespace mica::test;

namespace {

class FormatTest : public testing::TestWithParam<const BlockFormat *> {
protected:
  const BlockFormat &format = *GetParam();
};
class StoredFormatTest : public FormatTest {};
class OwnFormatTest : public FormatTest {};

INSTANTIATE_TEST_SUITE_P(Of, FormatTest, testing::ValuesIn(allBlockFormats()), FormatName());
INSTANTIATE_TEST_SUITE_P(Of, StoredFormatTest, testing::ValuesIn(storedBlockFormats()),
                         FormatName());
INSTANTIATE_TEST_SUITE_P(Of, OwnFormatTest, testing::ValuesIn(ownBlockFormats()), FormatName());

/// The data of an .npy file, after its header.
std::vector<uint8_t> npyBytes(const std::filesystem::path &path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  EXPECT_GT(bytes.size(), 10u) << path;
  if (bytes.size() <= 10)
    return {};
  size_t header = 10 + uint8_t(bytes[8]) + (size_t(uint8_t(bytes[9])) << 8);
  return {bytes.begin() + static_cast<std::ptrdiff_t>(header), bytes.end()};
}

/// The goldens were created by the package gguf.
TEST_P(StoredFormatTest, DecodesLikeTheReference) {
  std::filesystem::path goldens = MICA_SOURCE_DIR "/tests/goldens/gguf";
  std::string name(format.name);
  std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  std::vector<uint8_t> blocks = npyBytes(goldens / (name + ".blocks.npy")),
                       expected = npyBytes(goldens / (name + ".values.npy"));
  ASSERT_FALSE(blocks.empty());
  ASSERT_EQ(blocks.size() % format.bytes, 0u);
  std::vector<float> values = decodeAll(format, blocks);
  ASSERT_EQ(expected.size(), values.size() * sizeof(float));
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(0, std::memcmp(&values[i], &expected[4 * i], 4)) << "number " << i;
}

/// Splitting a block is lossless: the numbers computed from its parts in f64 equal the dequantized
/// ones up to rounding to f32.
TEST_P(FormatTest, PartsAreTheNumbers) {
  std::vector<uint8_t> blocks = randomBlocks(format, 40, 1);
  std::vector<float> values = decodeAll(format, blocks);
  BlockParts parts{};
  for (size_t i = 0; i < values.size(); ++i) {
    size_t inBlock = i % format.elements, group = inBlock / format.group;
    if (inBlock == 0)
      splitBlock(format, blocks.data() + i / format.elements * format.bytes, parts);
    int code = parts.codes[inBlock];
    double step = scaleOf(format, parts.scale), offset = 0;
    if (format.hasOffsets())
      offset = format.offsetSign * double(scaleOf(format, parts.offset));
    if (format.hasSubScales()) {
      step *= parts.scales[group];
      offset *= parts.offsets[group];
    }
    double level = format.levels ? format.levels[code] : code - format.bias;
    double size = std::abs(step * level) + std::abs(offset);
    ASSERT_NEAR(values[i], step * level + offset, size * 0x1p-23) << "number " << i;
  }
}

/// Blocks may have any alignment in a file.
TEST_P(FormatTest, BlocksNeedNoAlignment) {
  std::vector<uint8_t> blocks = randomBlocks(format, 3, 2), moved = blocks;
  moved.insert(moved.begin(), 0xff);
  std::vector<float> values(format.elements), other(format.elements);
  for (int i = 0; i < 3; ++i) {
    decodeBlock(format, blocks.data() + i * format.bytes, values.data());
    decodeBlock(format, moved.data() + 1 + i * format.bytes, other.data());
    EXPECT_EQ(values, other);
  }
}

/// A block has as many bytes as its parts: every byte is used exactly once.
TEST_P(FormatTest, EveryBitOfABlockCounts) {
  std::vector<uint8_t> block = randomBlocks(format, 1, 3);
  BlockParts parts{};
  splitBlock(format, block.data(), parts);
  auto isSame = [&](const BlockParts &a, const BlockParts &b) {
    return std::equal(a.codes, a.codes + format.elements, b.codes) && a.scale == b.scale &&
           a.offset == b.offset && std::equal(a.scales, a.scales + format.groups(), b.scales) &&
           std::equal(a.offsets, a.offsets + format.groups(), b.offsets);
  };
  for (int32_t bit = 0; bit < 8 * format.bytes; ++bit) {
    block[bit / 8] ^= uint8_t(1 << bit % 8);
    BlockParts other{};
    splitBlock(format, block.data(), other);
    EXPECT_FALSE(isSame(parts, other)) << "bit " << bit;
    block[bit / 8] ^= uint8_t(1 << bit % 8);
  }
}

/// Split blocks are joined to the same bytes.
TEST_P(OwnFormatTest, BlocksRoundTrip) {
  std::vector<uint8_t> blocks = randomBlocks(format, 5, 6), made(format.bytes);
  for (size_t at = 0; at < blocks.size(); at += format.bytes) {
    BlockParts parts{};
    splitBlock(format, blocks.data() + at, parts);
    joinBlock(format, parts, made.data());
    EXPECT_TRUE(std::equal(made.begin(), made.end(), blocks.begin() + int64_t(at)));
  }
}

TEST_P(FormatTest, CodesStayInTheirBits) {
  std::vector<uint8_t> blocks = randomBlocks(format, 4, 4);
  for (size_t at = 0; at < blocks.size(); at += format.bytes) {
    BlockParts parts{};
    splitBlock(format, blocks.data() + at, parts);
    for (int32_t i = 0; i < format.elements; ++i)
      ASSERT_LT(parts.codes[i], 1 << format.codeBits());
  }
}

/// The added bytes are those of sub-scales that have 4 or 6 bits in files.
TEST_P(FormatTest, PackedFormIsHardlyLarger) {
  PackedBlocks packed(format);
  int64_t own = 8 * packed.bytesOf(256 * 64), file = int64_t(format.bits() * 256 * 64 * 64);
  EXPECT_GE(own, file);
  EXPECT_LE(double(own), 1.05 * double(file));
}

TEST_P(FormatTest, PackedPartsFollowEachOther) {
  PackedBlocks packed(format);
  int64_t scale = format.scaleType == ScaleType::E8M0Half ? 1 : 2;
  EXPECT_EQ(packed.scaleBytes, scale);
  EXPECT_EQ(packed.headerBytes, 64 * scale * (format.hasOffsets() ? 2 : 1));
  EXPECT_EQ(packed.chunks * 32, format.elements);
  int64_t codesAt = packed.chunkBytes - 64 * 32 * format.codeBits() / 8;
  EXPECT_EQ(codesAt,
            packed.groups * 64 *
                (format.hasOffsets() && format.subScaleType == SubScaleType::Bytes ? 2 : 1));
  // Lines are in the order in which quads need them, the high plane first.
  int64_t at = codesAt;
  for (int64_t quad = 0, low = 0, high = 0; quad < PackedBlocks::kQuads; ++quad) {
    if (quad * format.high.width % 8 == 0 && format.high.width != 0) {
      EXPECT_EQ(packed.highLineAt(high++), at) << quad;
      at += 256;
    }
    if (quad * format.low.width % 8 == 0) {
      EXPECT_EQ(packed.lowLineAt(low++), at) << quad;
      at += 256;
    }
  }
  EXPECT_EQ(at, packed.chunkBytes);
  EXPECT_EQ(packed.blockBytes, packed.headerBytes + packed.chunks * packed.chunkBytes);
  EXPECT_EQ(packed.bytesOf(format.elements), packed.blockBytes);
  EXPECT_EQ(packed.bytesOf(3 * format.elements), 3 * packed.blockBytes);
  // The last block may end early, with a whole chunk.
  EXPECT_EQ(packed.bytesOf(1), packed.headerBytes + packed.chunkBytes);
  if (packed.chunks > 1) {
    EXPECT_EQ(packed.bytesOf(format.elements + 33),
              packed.blockBytes + packed.headerBytes + 2 * packed.chunkBytes);
  }
}

TEST_P(FormatTest, DetectsNonfiniteScales) {
  std::vector<uint8_t> block = randomBlocks(format, 1, 5);
  auto range = [&] {
    BlockParts parts{};
    splitBlock(format, block.data(), parts);
    return scaleRangeOf(format, parts);
  };
  EXPECT_EQ(range(), ScaleRange::Finite);
  std::vector<uint16_t> broken = {0x7c00, 0xfc00, 0x7e01, 0xffff}, overflowing = {},
                        largest = {0x7bff, 0xfbff, 0};
  if (format.scaleType == ScaleType::BF16)
    // Numbers of the block would be infinite above about 2^113.
    broken = {0x7f80, 0xff80, 0x7fc0, 0xff81}, overflowing = {0x7f7f},
    largest = {0x7800, 0xf800, 0};
  if (format.scaleType == ScaleType::E8M0Half)
    broken = {255}, overflowing = {254}, largest = {247, 1, 0};
  for (int32_t at : {format.scaleAt, format.offsetAt}) {
    if (at < 0)
      continue;
    std::vector<uint8_t> whole = block;
    for (const auto &[scales, wanted] :
         {std::pair(broken, ScaleRange::NotFinite), std::pair(overflowing, ScaleRange::Overflow),
          std::pair(largest, ScaleRange::Finite)})
      for (uint16_t bits : scales) {
        storeScale(format, at, bits, block.data());
        EXPECT_EQ(range(), wanted) << bits << " at " << at;
      }
    block = whole;
  }
}

/// For any bytes: accepted scales result in finite numbers whatever the codes; f16 scales, whose
/// largest products are finite, are only rejected if they are not finite.
TEST_P(FormatTest, AnyBytesAreFiniteOrRefused) {
  constexpr int count = 4000;
  std::mt19937 random(7);
  std::vector<uint8_t> blocks = anyBlocks(format, count, random);
  std::vector<float> values(format.elements);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    uint8_t *block = blocks.data() + i * format.bytes;
    BlockParts parts{};
    splitBlock(format, block, parts);
    bool isFinite = scaleRangeOf(format, parts) == ScaleRange::Finite;
    refused += !isFinite;
    if (format.scaleType == ScaleType::F16) {
      auto isNumber = [](uint16_t bits) { return (bits & 0x7c00) != 0x7c00; };
      EXPECT_EQ(isFinite,
                isNumber(parts.scale) && (!format.hasOffsets() || isNumber(parts.offset)));
    }
    if (!isFinite)
      continue;
    decodeBlock(format, block, values.data());
    for (float value : values)
      ASSERT_TRUE(std::isfinite(value)) << "block " << i;
    // The same scales with the codes of another block.
    std::vector<uint8_t> other(blocks.end() - format.bytes, blocks.end());
    storeScale(format, format.scaleAt, parts.scale, other.data());
    if (format.hasOffsets())
      storeScale(format, format.offsetAt, parts.offset, other.data());
    decodeBlock(format, other.data(), values.data());
    for (float value : values)
      ASSERT_TRUE(std::isfinite(value)) << "scales of block " << i;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, count / 4);
}

TEST_P(FormatTest, IsFoundByItsName) {
  EXPECT_EQ(blockFormatNamed(format.name), &format);
  EXPECT_EQ(blockFormatNamed(std::string(format.name) + " "), nullptr);
}

TEST(BlockFormats, NamesAreUnique) {
  std::map<std::string_view, int> names;
  for (const BlockFormat &format : blockFormats())
    EXPECT_EQ(names[format.name]++, 0) << format.name;
  EXPECT_EQ(blockFormatNamed(""), nullptr);
  EXPECT_EQ(blockFormatNamed("q4"), nullptr);
}

/// Halves of powers of two, the two smallest of which are subnormal.
TEST(BlockFormats, PowersOfTwo) {
  const BlockFormat &mxfp4 = *blockFormatNamed("mxfp4");
  EXPECT_EQ(scaleOf(mxfp4, 0), 0x1p-128f);
  EXPECT_EQ(scaleOf(mxfp4, 1), 0x1p-127f);
  for (int e = 2; e < 255; ++e)
    EXPECT_EQ(scaleOf(mxfp4, uint16_t(e)), std::ldexp(1.0f, e - 128)) << e;
  // A block with that scale is dequantized to llama.cpp's bits; a weight that preserves it is
  // rejected.
  EXPECT_EQ(scaleOf(mxfp4, 255), 0x1p127f);
  BlockParts parts{};
  parts.scale = 255;
  EXPECT_EQ(scaleRangeOf(mxfp4, parts), ScaleRange::NotFinite);
}

TEST(BlockFormats, ScalesAreTheirBits) {
  const BlockFormat &q8 = *blockFormatNamed("q8_0"), &int8 = *blockFormatNamed("int8_g32");
  EXPECT_EQ(scaleOf(q8, 0x3c00), 1.0f);
  EXPECT_EQ(scaleOf(q8, 0xb800), -0.5f);
  EXPECT_EQ(scaleOf(q8, 1), 0x1p-24f);
  EXPECT_EQ(scaleOf(q8, 0x7bff), 65504.0f);
  EXPECT_EQ(scaleOf(int8, 0x3f80), 1.0f);
  EXPECT_EQ(scaleOf(int8, 0xbf00), -0.5f);
  EXPECT_EQ(scaleOf(int8, 1), 0x1p-133f);
}

} // namespace
