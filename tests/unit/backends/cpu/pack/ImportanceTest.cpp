//===- ImportanceTest.cpp - statistics of activations and their effect ----===//

#include "tests/unit/backends/cpu/pack/PackFixture.h"

#include "gmock/gmock.h"

using namespace mica;
using namespace mica::cpu;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

TEST(ColumnImportance, HasAMeanOfOne) {
  ColumnImportance importance;
  EXPECT_TRUE(importance.add("w", {2, 6, 4, 4}));
  EXPECT_THAT(importance.find({"w"}), ElementsAre(0.5, 1.5, 1, 1));
  TensorPart entry{.tensor = "w", .entry = 3};
  EXPECT_THAT(importance.find(entry), ElementsAre(0.5, 1.5, 1, 1)) << "parts have the columns";
  EXPECT_THAT(importance.find({"v"}), IsEmpty());
}

TEST(ColumnImportance, ColumnsThatWereZeroWeighLittle) {
  ColumnImportance importance;
  EXPECT_TRUE(importance.add("some", {0, 2}));
  EXPECT_THAT(importance.find({"some"}), ElementsAre(1e-3f, 2));
  EXPECT_TRUE(importance.add("none", {0, 0}));
  EXPECT_THAT(importance.find({"none"}), IsEmpty()) << "nothing is known";
}

TEST(ColumnImportance, RefusesNonMeanSquares) {
  ColumnImportance importance;
  for (float value : {-1.0f, INFINITY, NAN})
    EXPECT_FALSE(importance.add("w", {1, value}));
  EXPECT_THAT(importance.find({"w"}), IsEmpty());
}

using ImportanceTest = PackTest;

/// A row of 64 that no grid of 16 steps represents: half of it is much larger than the other half.
constexpr int64_t kColumns = 64;
std::vector<float> unevenRow() {
  std::vector<float> row;
  for (int64_t i = 0; i < kColumns; ++i)
    row.push_back((i % 2 == 0 ? 1.0f : 0.1f) * std::sin(float(i + 1)));
  return row;
}

/// Mean square error of odd columns in packed form.
double errorOfOdd(const std::vector<uint8_t> &packed, llvm::ArrayRef<float> row) {
  const BlockFormat &format = *blockFormatNamed("int4_g32");
  PackedBlocks layout(format);
  double sum = 0;
  for (int64_t i = 1; i < kColumns; i += 2) {
    // As in docs/dialect.md: a header of 64 scales and of 64 offsets, then chunks of 32 columns.
    auto number = [&](const uint8_t *at) {
      return std::bit_cast<float>(uint32_t(at[0] | at[1] << 8) << 16);
    };
    const uint8_t *head = packed.data() + i / format.elements * layout.blockBytes,
                  *chunk = head + layout.headerBytes + i % format.elements / 32 * layout.chunkBytes;
    int64_t quad = i % 32 / 4;
    int code = chunk[layout.lowLineAt(quad / 2) + i % 4] >> 4 * (quad % 2) & 15;
    float scale = number(head) * float(int8_t(chunk[0])),
          offset = number(head + layout.offsetAt) * float(int8_t(chunk[layout.subOffsetAt]));
    float value = scale * float(code - format.bias) + float(format.offsetSign) * offset;
    sum += std::pow(value - row[i], 2);
  }
  return sum / (kColumns / 2);
}

TEST_F(ImportanceTest, ErrorsMoveToColumnsThatMatterLess) {
  std::vector<float> row = unevenRow();
  source.add("w", WeightType::F32, {1, kColumns});
  source.set("w", row);
  auto pack = [&] {
    return llvm::cantFail(
        PackTest::pack("mica.weight @w at 0 : tensor<1x64x!mica.block<int4_g32>>"));
  };
  double alike = errorOfOdd(pack(), row);
  std::vector<float> squares;
  for (int64_t i = 0; i < kColumns; ++i)
    squares.push_back(i % 2 == 0 ? 1 : 1000);
  ASSERT_TRUE(importance.add("w", squares));
  double calibrated = errorOfOdd(pack(), row);
  EXPECT_LT(calibrated, 0.7 * alike);
  EXPECT_GT(alike, 0);
}

TEST_F(ImportanceTest, StatisticsOfAnotherModelAreRefused) {
  source.add("w", WeightType::F32, {1, kColumns});
  ASSERT_TRUE(importance.add("w", {1, 2}));
  EXPECT_THAT(
      errorOf("mica.weight @w at 0 : tensor<1x64x!mica.block<int4_g32>>"),
      HasSubstr("\"w\" has 64 columns, but the statistics in imatrix.gguf are for 2; use those "
                "of this model"));
}

/// Equalization multiplies a column by the divisor of its activation: activations that are as large
/// as the factors have equal weight after equalization.
TEST_F(ImportanceTest, EqualizedColumnsWeighAsTheirActivations) {
  std::vector<float> row = unevenRow(), normWeights(kColumns, 1);
  source.add("norm", WeightType::F32, {kColumns});
  source.set("norm", normWeights);
  source.add("w", WeightType::F32, {1, kColumns});
  source.set("w", row);
  std::string balance = "mica.equalize rows [\"norm\"] columns [\"w\"]\n";
  auto floats = llvm::cantFail(pack(balance + "mica.weight @w at 0 : tensor<1x64xf32>"));
  std::vector<float> balanced(kColumns), squares;
  std::memcpy(balanced.data(), floats.data(), floats.size());
  for (int64_t i = 0; i < kColumns; ++i)
    squares.push_back(std::pow(balanced[i] / row[i], 2));
  EXPECT_NE(balanced, row);
  source.add("v", WeightType::F32, {1, kColumns});
  source.set("v", balanced);
  ASSERT_TRUE(importance.add("w", squares));
  ASSERT_TRUE(importance.add("v", std::vector<float>(kColumns, 1)));
  EXPECT_EQ(
      llvm::cantFail(pack(balance + "mica.weight @w at 0 : tensor<1x64x!mica.block<int4_g32>>")),
      llvm::cantFail(pack("mica.weight @v at 0 : tensor<1x64x!mica.block<int4_g32>>")));
}

} // namespace
