//===- QuantizeTest.cpp - int8 rows and block formats ---------------------===//

#include "ir/Quantize/Quantize.h"
#include "ir/Mica/Mica.h"
#include "tests/unit/RandomBlocks.h"

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/STLExtras.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mica;
using namespace mica::test;
using testing::Each;

namespace {

using Row = std::vector<float>;

struct Int8 {
  std::vector<int8_t> q;
  float scale;
  explicit Int8(const Row &row) : q(row.size(), 99), scale(quantizeInt8(row, q)) {}
};

double squaredError(const Row &a, const Row &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return sum;
}

Row gaussian(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.02f);
  Row row(size);
  for (float &value : row)
    value = normal(random);
  return row;
}

Row laplace(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::exponential_distribution<float> tail(50);
  Row row(size);
  for (float &value : row)
    value = random() % 2 ? tail(random) : -tail(random);
  return row;
}

/// Some columns are 16 times larger than others, as after a norm with large weights.
Row withOutliers(size_t size, unsigned seed) {
  Row row = gaussian(size, seed);
  for (size_t i = seed % 50; i < size; i += 97)
    row[i] *= 16;
  return row;
}

TEST(QuantizeInt8, IsWithinHalfAStep) {
  for (size_t size : {1, 2, 31, 64, 100, 1000})
    for (const Row &row : {gaussian(size, 1), laplace(size, 2), withOutliers(size, 3)}) {
      Int8 result(row);
      int largest = 0;
      for (size_t i = 0; i < size; ++i) {
        EXPECT_LE(std::abs(row[i] - result.scale * result.q[i]), result.scale * 0.50001f);
        largest = std::max(largest, std::abs(int(result.q[i])));
      }
      EXPECT_EQ(largest, 127);
    }
}

TEST(QuantizeInt8, RoundsTiesToEven) {
  Int8 result(Row{127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -127, 2.4f});
  EXPECT_EQ(result.scale, 1);
  EXPECT_THAT(result.q, testing::ElementsAre(127, 0, 2, 2, 0, -2, -127, 2));
}

TEST(QuantizeInt8, RowsWithoutAScale) {
  for (float value : {0.0f, -0.0f, 1e-40f}) {
    Int8 zero(Row(70, value));
    EXPECT_EQ(zero.scale, 0);
    EXPECT_THAT(zero.q, Each(0));
  }
  for (float value : {INFINITY, -INFINITY, NAN}) {
    Row row = gaussian(70, 1);
    row[50] = value;
    Int8 result(row);
    EXPECT_FALSE(std::isfinite(result.scale));
    EXPECT_THAT(result.q, Each(0));
  }
}

/// Mica's own formats.
class QuantizeBlocks : public testing::TestWithParam<const BlockFormat *> {
protected:
  using Blocks = std::vector<uint8_t>;

  Blocks quantize(const Row &row, const Row &importance = {}) const {
    Blocks blocks((row.size() + format.elements - 1) / format.elements * format.bytes, 0x99);
    EXPECT_TRUE(quantizeBlocks(format, row, importance, blocks));
    return blocks;
  }

  Row valuesOf(const Blocks &blocks, size_t size) const {
    Row values = decodeAll(format, blocks);
    values.resize(size);
    return values;
  }

  Row rounded(const Row &row, const Row &importance = {}) const {
    return valuesOf(quantize(row, importance), row.size());
  }

  /// Numbers in f64 on the grid that exactly covers their group of 32.
  std::vector<double> fitPlainly(const Row &row) const {
    std::vector<double> fitted;
    double codes = (1 << format.codeBits()) - 1;
    for (size_t begin = 0; begin < row.size(); begin += 32) {
      Row group(row.begin() + begin, row.begin() + std::min(row.size(), begin + 32));
      double min = *std::min_element(group.begin(), group.end()),
             max = *std::max_element(group.begin(), group.end()), offset = min,
             scale = (max - min) / codes;
      if (!format.hasOffsets()) {
        offset = 0;
        scale = std::max(max, -min) / (codes / 2 - 0.5);
      }
      for (float x : group)
        fitted.push_back(scale > 0 ? offset + std::round((x - offset) / scale) * scale : x);
    }
    return fitted;
  }

  const BlockFormat &format = *GetParam();
};

std::vector<const BlockFormat *> ownFormats() {
  std::vector<const BlockFormat *> formats = allBlockFormats();
  std::erase_if(formats, [](const BlockFormat *format) { return !format->isOwn; });
  return formats;
}

INSTANTIATE_TEST_SUITE_P(Of, QuantizeBlocks, testing::ValuesIn(ownFormats()), FormatName());

/// Numbers of one sign, far from zero.
Row shifted(size_t size, unsigned seed) {
  Row row = gaussian(size, seed);
  for (float &value : row)
    value += 0.1f;
  return row;
}

TEST_P(QuantizeBlocks, LosesLittleMoreThanAPlainFit) {
  for (auto make : {gaussian, laplace, withOutliers, shifted})
    for (size_t size : {1000, 2048, 96, 40}) {
      double own = 0, plain = 0;
      for (unsigned seed = 0; seed < 100000 / size; ++seed) {
        Row row = make(size, seed), values = rounded(row);
        std::vector<double> fitted = fitPlainly(row);
        for (size_t i = 0; i < size; ++i) {
          own += std::pow(double(row[i]) - values[i], 2);
          plain += std::pow(double(row[i]) - fitted[i], 2);
        }
      }
      // The search improves formats with few codes; scales that are bytes times a number of the
      // block lose with many codes. Large numbers have more weight.
      EXPECT_LE(own, 1.3 * plain) << size << ": " << own / plain;
    }
}

TEST_P(QuantizeBlocks, Zeros) {
  for (size_t size : {1, 32, 256, 300})
    EXPECT_THAT(rounded(Row(size)), Each(0));
  Row row(512);
  for (size_t i = 64; i < 96; ++i)
    row[i] = 1;
  Row values = rounded(row);
  for (size_t i = 0; i < row.size(); ++i)
    EXPECT_NEAR(values[i], row[i], row[i] * 0.01) << i;
}

TEST_P(QuantizeBlocks, OneElement) {
  for (float value : {1.0f, -1.0f, 0.3f, -1234.5f}) {
    EXPECT_NEAR(rounded({value})[0], value, std::abs(value) * 0.01);
    // Before others that are zero, in a separate group.
    Row row(40);
    row[39] = value;
    EXPECT_NEAR(rounded(row)[39], value, std::abs(value) * 0.01);
  }
}

/// A block depends only on its own elements, wherever it is in a row.
TEST_P(QuantizeBlocks, BlocksOfRowsOfAnyLength) {
  for (size_t size : {257, 300, 511, 512, 1000, 1025}) {
    Row row = withOutliers(size, 1);
    Blocks whole = quantize(row);
    for (size_t begin = 0; begin < size; begin += format.elements) {
      Row part(row.begin() + begin, row.begin() + std::min<size_t>(size, begin + format.elements));
      Blocks own(whole.begin() + begin / format.elements * format.bytes,
                 whole.begin() + (begin / format.elements + 1) * format.bytes);
      EXPECT_EQ(quantize(part), own) << begin << " of " << size;
    }
  }
}

TEST_P(QuantizeBlocks, PowersOfTwoChangeTheScalesAlone) {
  Row row = withOutliers(600, 3);
  Row values = rounded(row);
  for (int exponent : {-90, -60, -21, -3, 21, 40, 90, 120}) {
    Row moved, expected;
    for (size_t i = 0; i < row.size(); ++i) {
      moved.push_back(std::ldexp(row[i], exponent));
      expected.push_back(std::ldexp(values[i], exponent));
    }
    EXPECT_EQ(rounded(moved), expected) << exponent;
  }
}

TEST_P(QuantizeBlocks, HugeNumbersStayFinite) {
  Row row = gaussian(300, 4);
  row[0] = 0x1p127f;
  row[290] = -0x1p127f;
  Row values = rounded(row);
  EXPECT_NEAR(values[0], row[0], row[0] * 0.01);
  EXPECT_NEAR(values[290], row[290], row[0] * 0.01);
  for (float value : values)
    EXPECT_TRUE(std::isfinite(value));
}

/// All numbers of a group may be equal; then no scale is better than another one.
TEST_P(QuantizeBlocks, ConstantGroups) {
  Row row(300, -0.75f);
  for (size_t i = 64; i < 96; ++i)
    row[i] = 1.5f;
  Row values = rounded(row);
  for (size_t i = 0; i < row.size(); ++i)
    EXPECT_NEAR(values[i], row[i], 0.01) << i;
}

TEST_P(QuantizeBlocks, RefusesNonFiniteValues) {
  for (float value : {INFINITY, -INFINITY, NAN})
    for (size_t at : {0, 299}) {
      Row row = gaussian(300, 1);
      row[at] = value;
      Blocks blocks(2 * format.bytes);
      EXPECT_FALSE(quantizeBlocks(format, row, {}, blocks));
    }
}

/// Weighted errors of important elements become smaller, those of others larger.
TEST_P(QuantizeBlocks, ImportanceWeightsErrors) {
  double important = 0, plain = 0, others = 0, plainOthers = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    Row row = gaussian(2048, seed), importance(row.size(), 1e-3f);
    for (size_t i = 0; i < row.size(); i += 8)
      importance[i] = 1;
    Row with = rounded(row, importance), without = rounded(row);
    for (size_t i = 0; i < row.size(); ++i) {
      (i % 8 ? others : important) += std::pow(double(row[i]) - with[i], 2);
      (i % 8 ? plainOthers : plain) += std::pow(double(row[i]) - without[i], 2);
    }
  }
  EXPECT_LT(important, 0.9 * plain);
  EXPECT_GT(others, plainOthers);
  // A common factor has no effect.
  Row row = gaussian(600, 1);
  EXPECT_EQ(quantize(row, Row(600, 1)), quantize(row, Row(600, 4)));
}

/// With an offset, all codes are used for the range of the numbers.
TEST_P(QuantizeBlocks, NumbersOfOneSign) {
  for (float sign : {1.0f, -1.0f}) {
    Row row;
    for (int i = 0; i < 512; ++i)
      row.push_back(sign * (1 + static_cast<float>(i * 37 % 512) / 512));
    double step = format.hasOffsets() ? 1.0 / 15 : 2.0 / ((1 << (format.codeBits() - 1)) - 1);
    Row values = rounded(row);
    for (size_t i = 0; i < row.size(); ++i)
      EXPECT_NEAR(values[i], row[i], 0.7 * step) << i;
  }
}

/// The bytes do not depend on the processor: the numbers are computed without the math library.
TEST_P(QuantizeBlocks, AreTheSameOnEveryProcessor) {
  std::mt19937 random(7);
  Row row, importance;
  for (int i = 0; i < 1000; ++i) {
    float sum = -3;
    for (int j = 0; j < 6; ++j)
      sum += static_cast<float>(random() >> 8) * 0x1p-24f;
    row.push_back(sum * (i % 97 == 5 ? 16 : 1));
    importance.push_back(static_cast<float>(random() >> 8) * 0x1p-24f);
  }
  auto hashOf = [](const Blocks &blocks) {
    uint32_t hash = 2166136261; // FNV-1a
    for (uint8_t byte : blocks)
      hash = (hash ^ byte) * 16777619;
    return hash;
  };
  struct Expected {
    std::string_view format;
    uint32_t plain, weighted;
  };
  constexpr Expected kExpected[] = {{"int8_g32", 4174452866, 1796194928},
                                    {"int6_g32", 707611716, 1653076827},
                                    {"int4_g32", 3760882421, 2499194548}};
  const auto *expected =
      llvm::find_if(kExpected, [&](const Expected &each) { return each.format == format.name; });
  ASSERT_NE(expected, std::end(kExpected));
  EXPECT_EQ(hashOf(quantize(row)), expected->plain);
  EXPECT_EQ(hashOf(quantize(row, importance)), expected->weighted);
}

TEST(RoundToIntegers, GivesTheValuesOfTheIntegers) {
  mlir::MLIRContext context;
  context.loadDialect<MicaDialect>();
  Row row = gaussian(200, 9), eight = row;
  Int8Type::get(&context).roundRow(eight);
  Int8 expected(row);
  for (size_t i = 0; i < row.size(); ++i)
    EXPECT_EQ(eight[i], expected.scale * expected.q[i]);
  Row again = eight;
  Int8Type::get(&context).roundRow(again);
  EXPECT_LE(squaredError(again, eight), 1e-12 * squaredError(Row(row.size()), row));
  // For !mica.int_rows, every 32 elements are a separate row.
  Row bytes = row;
  IntRowsType::get(&context, 8, 32).roundRow(bytes);
  for (size_t begin = 0; begin < row.size(); begin += 32) {
    Row group(row.begin() + begin, row.begin() + std::min(row.size(), begin + 32));
    Int8 own(group);
    for (size_t i = 0; i < group.size(); ++i)
      EXPECT_EQ(bytes[begin + i], own.scale * own.q[i]);
  }
  for (const BlockFormat *format : ownFormats()) {
    Row values = row, blocks = row;
    BlockType::get(&context, format).roundRow(values);
    std::vector<uint8_t> bytes(format->bytes);
    EXPECT_TRUE(quantizeBlocks(*format, row, {}, bytes));
    blocks = decodeAll(*format, bytes);
    blocks.resize(row.size());
    EXPECT_EQ(values, blocks);
  }
}

} // namespace
