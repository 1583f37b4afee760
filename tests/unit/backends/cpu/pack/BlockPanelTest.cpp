//===- BlockPanelTest.cpp - packed blocks, read element by element --------===//

#include "ir/Mica/Mica.h"
#include "ir/Quantize/Quantize.h"
#include "ir/Quantize/ScaleRange.h"
#include "tests/unit/backends/cpu/pack/PackFixture.h"

#include "mlir/AsmParser/AsmParser.h"
#include "gmock/gmock.h"

#include <optional>
#include <utility>

using namespace mica;
using namespace mica::cpu;
using testing::HasSubstr;

namespace {

/// Reads packed blocks element by element, as docs/dialect.md describes `#mica.packed`; shares no
/// code with the packer and the kernels. Sizes are for 64 columns.
class SlowReader {
public:
  explicit SlowReader(const BlockFormat &format)
      : format(format), scaleBytes(format.scaleType == ScaleType::E8M0Half ? 1 : 2),
        header(64 * scaleBytes * (format.offsetAt >= 0 ? 2 : 1)),
        groups(format.hasSubScales() ? 32 / format.group : 0),
        subScales(groups * 64 *
                  (format.subScaleType == SubScaleType::Bytes && format.offsetAt >= 0 ? 2 : 1)),
        chunk(subScales + 64 * 4 * (format.low.width + format.high.width)) {}

  /// The size of 64 rows of k numbers, in bytes.
  int64_t bytesOf(int64_t k) const {
    int64_t chunks = (k + 31) / 32, blocks = (k + format.elements - 1) / format.elements;
    return blocks * header + chunks * chunk;
  }

  /// Element (row, column) of a matrix with rows of k.
  float value(llvm::ArrayRef<uint8_t> bytes, int64_t k, int64_t row, int64_t column) const {
    int64_t inRow = row % 64, block = column / format.elements, inBlock = column % format.elements,
            quad = inBlock % 32 / 4;
    const uint8_t *head = bytes.data() + row / 64 * bytesOf(k) +
                          block * (header + format.elements / 32 * chunk),
                  *part = head + header + inBlock / 32 * chunk;
    // The lines with the quad: each plane's follows the first quad for which it has bits.
    int64_t next = subScales, lowLine = 0, highLine = 0;
    for (int64_t q = 0; q <= quad; ++q) {
      if (format.high.width > 0 && q * format.high.width % 8 == 0)
        highLine = std::exchange(next, next + 256);
      if (q * format.low.width % 8 == 0)
        lowLine = std::exchange(next, next + 256);
    }
    auto plane = [&](int64_t line, int64_t width) {
      if (width == 0)
        return 0;
      uint8_t byte = part[line + inRow * 4 + column % 4];
      return byte >> width * (quad % (8 / width)) & ((1 << width) - 1);
    };
    int code = plane(lowLine, format.low.width) | plane(highLine, format.high.width)
                                                      << format.low.width;
    float level = format.levels ? float(format.levels[code]) : float(code - format.bias);
    float step = number(head, inRow), offset = 0;
    if (format.offsetAt >= 0)
      offset = number(head + 64 * scaleBytes, inRow);
    if (groups > 0) {
      int64_t at = inBlock % 32 / format.group * 64 + inRow;
      if (format.subScaleType == SubScaleType::Nibbles) {
        step *= float(part[at] & 15);
        offset *= float(part[at] >> 4);
      } else {
        step *= float(static_cast<int8_t>(part[at]));
        if (format.offsetAt >= 0)
          offset *= float(static_cast<int8_t>(part[groups * 64 + at]));
      }
    }
    volatile float product = step * level; // rounded before the sum
    return format.offsetAt < 0 ? product : product + float(format.offsetSign) * offset;
  }

private:
  float number(const uint8_t *scales, int64_t row) const {
    if (scaleBytes == 1)
      return std::ldexp(1.0f, scales[row] - 128);
    uint16_t bits;
    std::memcpy(&bits, scales + 2 * row, 2);
    if (format.scaleType == ScaleType::BF16)
      return std::bit_cast<float>(uint32_t(bits) << 16);
    return float(std::bit_cast<_Float16>(bits));
  }

  const BlockFormat &format;
  int64_t scaleBytes, header, groups, subScales, chunk;
};

class BlockPanelTest : public PackTest, public testing::WithParamInterface<const BlockFormat *> {
protected:
  std::string type(const std::string &shape) {
    return "tensor<" + shape + "x!mica.block<" + std::string(format.name) + ">>";
  }
  std::string shapeOf(int64_t n, int64_t k) { return std::to_string(n) + "x" + std::to_string(k); }

  /// The rows are `values`, followed by zero rows.
  void expectRows(llvm::ArrayRef<uint8_t> bytes, llvm::ArrayRef<float> values, int64_t k) {
    auto rows = int64_t(values.size()) / k;
    ASSERT_EQ(int64_t(bytes.size()), (rows + 63) / 64 * reader.bytesOf(k));
    for (int64_t row = 0; row < (rows + 63) / 64 * 64; ++row)
      for (int64_t column = 0; column < k; ++column) {
        float expected = row < rows ? values[row * k + column] : 0;
        ASSERT_EQ(reader.value(bytes, k, row, column), expected) << row << ", " << column;
      }
  }

  const BlockFormat &format = *GetParam();
  SlowReader reader{format};
};

INSTANTIATE_TEST_SUITE_P(Of, BlockPanelTest, testing::ValuesIn(test::storedBlockFormats()),
                         test::FormatName());

TEST_P(BlockPanelTest, MatricesOfOddShapes) {
  for (auto [rows, blocks] : {std::pair<int64_t, int64_t>{1, 1}, {64, 2}, {65, 3}, {130, 9}}) {
    source = MemorySource();
    int64_t k = blocks * format.elements;
    source.addBlocksOf(format, "w", {rows, k});
    std::vector<uint8_t> bytes =
        llvm::cantFail(pack("mica.weight @w at 0 : " + type(shapeOf(rows, k))));
    auto stored =
        mlir::cast<mlir::RankedTensorType>(mlir::parseType(type(shapeOf(rows, k)), &context));
    EXPECT_EQ(int64_t(bytes.size()), getStoredBytes(stored));
    expectRows(bytes, source.values("w"), k);
    ASSERT_FALSE(HasFatalFailure()) << rows << "x" << k;
  }
}

TEST_P(BlockPanelTest, ConcatJoinsAndInterleaveAlternates) {
  int64_t k = 2 * format.elements;
  source.addBlocksOf(format, "a", {72, k});
  source.addBlocksOf(format, "b", {72, k});
  const std::vector<float> &a = source.values("a"), &b = source.values("b");
  std::vector<float> joined = a, alternating;
  llvm::append_range(joined, b);
  expectRows(llvm::cantFail(
                 pack(R"(mica.weight @w from ["a", "b"] concat at 0 : )" + type(shapeOf(144, k)))),
             joined, k);
  for (int64_t block : {0, 64})
    for (const std::vector<float> *part : {&a, &b})
      for (int64_t i = block * k; i < (block + 64) * k; ++i)
        alternating.push_back(i < int64_t(part->size()) ? (*part)[i] : 0);
  expectRows(llvm::cantFail(pack(R"(mica.weight @w from ["a", "b"] interleave at 0 : )" +
                                 type(shapeOf(256, k)))),
             alternating, k);
}

/// Of two tensors for each expert, of one tensor for all, and of parts of tensors.
TEST_P(BlockPanelTest, StacksAndParts) {
  int64_t k = format.elements;
  std::string names;
  std::vector<float> stacked;
  for (int i = 0; i < 3; ++i) {
    std::string name = "e" + std::to_string(i);
    source.addBlocksOf(format, name, {70, k});
    names += (i ? ", \"" : "\"") + name + "\"";
  }
  auto expectStack = [&](llvm::ArrayRef<uint8_t> bytes, llvm::ArrayRef<std::vector<float>> each) {
    size_t size = bytes.size() / each.size();
    for (const std::vector<float> &values : each) {
      expectRows(bytes.take_front(size), values, k);
      bytes = bytes.drop_front(size);
    }
  };
  expectStack(llvm::cantFail(pack("mica.weight @w from [" + names +
                                  "] stack at 0 : " + type("3x" + shapeOf(70, k)))),
              {source.values("e0"), source.values("e1"), source.values("e2")});
  source.addBlocksOf(format, "all", {2, 70, k});
  llvm::ArrayRef<float> all = source.values("all");
  expectStack(llvm::cantFail(pack("mica.weight @all at 0 : " + type("2x" + shapeOf(70, k)))),
              {all.take_front(70 * k).vec(), all.drop_front(70 * k).vec()});
  std::vector<uint8_t> part =
      llvm::cantFail(pack(R"(mica.weight @p from [#mica.slice<"e0", rows 3 to 68 of 70>] at 0 : )" +
                          type(shapeOf(65, k))));
  expectRows(part, llvm::ArrayRef(source.values("e0")).slice(3 * k, 65 * k), k);
}

TEST_P(BlockPanelTest, IsTheSameOnAnyNumberOfThreads) {
  int64_t k = 3 * format.elements;
  source.addBlocksOf(format, "w", {1000, k});
  std::string text = "mica.weight @w at 0 : " + type(shapeOf(1000, k));
  std::vector<uint8_t> one = llvm::cantFail(pack(text, 1));
  expectRows(one, source.values("w"), k);
  EXPECT_TRUE(one == llvm::cantFail(pack(text, 2)) && one == llvm::cantFail(pack(text, 5)));
}

/// Blocks of a weight that is not block-quantized are dequantized to the same numbers.
TEST_P(BlockPanelTest, UnpackToFloats) {
  int64_t k = 2 * format.elements;
  source.addBlocksOf(format, "w", {3, k});
  std::vector<uint8_t> bytes =
      llvm::cantFail(pack("mica.weight @w at 0 : tensor<" + shapeOf(3, k) + "xf32>"));
  ASSERT_EQ(bytes.size(), 3 * k * sizeof(float));
  EXPECT_EQ(0, std::memcmp(bytes.data(), source.values("w").data(), bytes.size()));
}

/// In whatever they become: the same blocks, Mica's own, panels of floats, plain numbers.
TEST_P(BlockPanelTest, RejectsNonfiniteScales) {
  uint16_t nan = format.scaleType == ScaleType::E8M0Half ? 255 : 0x7e00,
           infinity = format.scaleType == ScaleType::E8M0Half ? 255 : 0xfc00,
           // Elements of f16 scales are always finite in f32.
      overflow = format.scaleType == ScaleType::E8M0Half ? 254 : 0;
  int64_t k = 3 * format.elements;
  std::string shape = shapeOf(70, k), of = "tensor<" + shape;
  const std::string bf16 = of + "xbf16, #mica.packed<columns = 64, depth = 2, k_block = 32>>";
  const std::string types[] = {type(shape),
                               of + "x!mica.block<int8_g32>>",
                               of + "x!mica.block<int4_g32>>",
                               bf16,
                               of + "xf32, #mica.packed<columns = 64, depth = 1, k_block = 16>>",
                               of + "xf32>"};
  for (int32_t at : {format.scaleAt, format.offsetAt})
    for (uint16_t bits : {nan, infinity, overflow}) {
      if (at < 0 || !bits)
        continue;
      source = MemorySource();
      source.addBlocksOf(format, "w", {70, k});
      source.setScale("w", 209, at, bits);
      for (const std::string &packed : types) {
        std::string words = bits == overflow ? "has a scale that overflows"
                            : packed == bf16 ? "holds NaN, infinity or a number beyond bf16"
                                             : "holds NaN or infinity";
        EXPECT_EQ(errorOf("mica.weight @w at 0 : " + packed),
                  "tensor \"w\" " + words + " in block 209; check the checkpoint")
            << packed;
      }
    }
}

/// For any bytes in a file: packed blocks are the same numbers, or the first invalid block is
/// named.
TEST_P(BlockPanelTest, PacksOrRefusesAnyBytes) {
  int packed = 0, refused = 0;
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    int64_t rows = 1 + round % 3, blocks = 1 + round / 3 % 3, k = blocks * format.elements;
    std::vector<uint8_t> bytes = test::anyBlocks(format, size_t(rows * blocks), random);
    source = MemorySource();
    source.addBlocksOf(format, "w", {rows, k});
    source.setBlocks("w", bytes);
    std::optional<int64_t> broken;
    std::string words;
    for (int64_t i = rows * blocks; i-- > 0;) {
      BlockParts parts{};
      splitBlock(format, bytes.data() + i * format.bytes, parts);
      if (ScaleRange range = scaleRangeOf(format, parts); range != ScaleRange::Finite) {
        broken = i;
        words =
            range == ScaleRange::Overflow ? "has a scale that overflows" : "holds NaN or infinity";
      }
    }
    std::string text = "mica.weight @w at 0 : " + type(shapeOf(rows, k));
    llvm::Expected<std::vector<uint8_t>> result = pack(text);
    ASSERT_EQ(bool(result), !broken) << round;
    if (!result) {
      ++refused;
      EXPECT_EQ(llvm::toString(result.takeError()), "tensor \"w\" " + words + " in block " +
                                                        std::to_string(*broken) +
                                                        "; check the checkpoint");
      continue;
    }
    ++packed;
    expectRows(*result, source.values("w"), k);
    ASSERT_FALSE(HasFatalFailure()) << round;
  }
  EXPECT_GT(packed, 0);
  EXPECT_GT(refused, 0);
}

TEST_P(BlockPanelTest, RejectsIncompleteRows) {
  int64_t k = 2 * format.elements;
  source.addBlocksOf(format, "w", {4, k}, /*missing=*/1);
  EXPECT_THAT(errorOf("mica.weight @w at 0 : " + type(shapeOf(4, k))),
              HasSubstr("has rows of " + std::to_string(k) + " elements, but \"w\" does not"));
  source.addBlocksOf(format, "v", {4, k});
  EXPECT_THAT(errorOf("mica.weight @v at 0 : " + type(shapeOf(8, format.elements))),
              HasSubstr("has rows of " + std::to_string(format.elements) +
                        " elements, but \"v\" does not"));
}

/// Mica's own formats: rows of any length are quantized as in the interpreter, the last block is
/// padded with zeros.
class OwnBlockPanelTest : public BlockPanelTest {
protected:
  std::vector<float> quantized(std::vector<float> values, int64_t k) {
    mlir::Type element = mlir::parseType("!mica.block<" + std::string(format.name) + ">", &context);
    for (size_t row = 0; row < values.size(); row += size_t(k))
      llvm::cast<QuantizedElementType>(element).roundRow(
          llvm::MutableArrayRef(values).slice(row, size_t(k)));
    return values;
  }
};

INSTANTIATE_TEST_SUITE_P(Of, OwnBlockPanelTest, testing::ValuesIn(test::ownBlockFormats()),
                         test::FormatName());

TEST_P(OwnBlockPanelTest, MatricesOfOddShapes) {
  for (auto [rows, k] :
       {std::pair<int64_t, int64_t>{1, 1}, {64, 32}, {65, 33}, {130, 256}, {70, 300}, {3, 1000}})
    for (WeightType from : {WeightType::F32, WeightType::BF16, WeightType::F16}) {
      source = MemorySource();
      source.add("w", from, {rows, k});
      std::vector<uint8_t> bytes =
          llvm::cantFail(pack("mica.weight @w at 0 : " + type(shapeOf(rows, k))));
      expectRows(bytes, quantized(source.values("w"), k), k);
      ASSERT_FALSE(HasFatalFailure()) << rows << "x" << k;
    }
}

/// Blocks of a file are converted to Mica's own blocks through their numbers.
TEST_P(OwnBlockPanelTest, RequantizesOtherBlocks) {
  source.addBlocksOf(*blockFormatNamed("q4_k"), "w", {5, 512});
  std::vector<uint8_t> bytes =
      llvm::cantFail(pack("mica.weight @w at 0 : " + type(shapeOf(5, 512))));
  expectRows(bytes, quantized(source.values("w"), 512), 512);
}

TEST_P(OwnBlockPanelTest, RefusesNonFiniteValues) {
  for (float poison : {NAN, INFINITY}) {
    source = MemorySource();
    source.add("a", WeightType::BF16, {70, 20});
    source.poison("a", 1399, poison);
    EXPECT_EQ(errorOf("mica.weight @a at 0 : " + type("70x20")),
              R"(tensor "a" holds NaN or infinity; check the checkpoint)");
  }
}

} // namespace
