//===- QuantizeTest.cpp - rows of integers ----------------------------------===//

#include "ir/Mica/Quantize.h"

#include "mlir/IR/MLIRContext.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <cmath>
#include <random>

using namespace mica;
using testing::Each;

namespace {

using Row = std::vector<float>;

struct Int8 {
  std::vector<int8_t> q;
  float scale;
  explicit Int8(const Row &row) : q(row.size(), 99), scale(quantizeInt8(row, q)) {}
};

struct Int4 {
  std::vector<uint8_t> q;
  std::vector<int8_t> multipliers;
  float scale;
  explicit Int4(const Row &row)
      : q(row.size(), 99), multipliers((row.size() + 31) / 32, 99),
        scale(quantizeInt4(row, q, multipliers)) {}

  Row values() const {
    Row result;
    for (size_t i = 0; i < q.size(); ++i)
      result.push_back(scale * float(multipliers[i / 32] * (q[i] - 8)));
    return result;
  }
};

double squaredError(const Row &a, const Row &b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
  return sum;
}

/// 4-bit integers with an own 16-bit scale for each 32 values, by the largest magnitude alone: 4.5
/// bits per value.
Row roundedToQ4_0(const Row &row) {
  Row result;
  for (size_t begin = 0; begin < row.size(); begin += 32) {
    size_t end = std::min(row.size(), begin + 32);
    float largest = 0;
    for (size_t i = begin; i < end; ++i)
      if (std::abs(row[i]) > std::abs(largest))
        largest = row[i];
    float scale = static_cast<float>(static_cast<_Float16>(largest / -8));
    for (size_t i = begin; i < end; ++i) {
      float q =
          scale == 0 ? 0 : std::clamp(std::floor(row[i] * (-8 / largest) + 8.5f), 0.0f, 15.0f) - 8;
      result.push_back(q * scale);
    }
  }
  return result;
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

/// Some columns are 16 times larger than the others, as where a norm has large gains.
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

/// Of rows with something that is no number; all their integers are `zero`.
template <typename Integers> void expectNoScale(int zero) {
  for (float value : {INFINITY, -INFINITY, NAN}) {
    Row row = gaussian(70, 1);
    row[50] = value;
    Integers result(row);
    EXPECT_FALSE(std::isfinite(result.scale));
    EXPECT_THAT(result.q, Each(zero));
  }
}

TEST(QuantizeInt8, RowsWithoutAScale) {
  for (float value : {0.0f, -0.0f, 1e-40f}) {
    Int8 zero(Row(70, value));
    EXPECT_EQ(zero.scale, 0);
    EXPECT_THAT(zero.q, Each(0));
  }
  expectNoScale<Int8>(0);
}

TEST(QuantizeInt4, StaysInBounds) {
  for (size_t size : {1, 31, 32, 33, 64, 100, 512, 513, 1000, 4096})
    for (const Row &row : {gaussian(size, 1), laplace(size, 2), withOutliers(size, 3)}) {
      Int4 result(row);
      EXPECT_GT(result.scale, 0);
      EXPECT_THAT(result.q, Each(testing::Le(15)));
      EXPECT_THAT(result.multipliers,
                  Each(testing::AllOf(testing::Ge(-15), testing::Le(15), testing::Ne(0))));
    }
}

TEST(QuantizeInt4, IntegersComeBack) {
  std::mt19937 random(5);
  Row row;
  for (int group = 0; group < 8; ++group)
    for (int i = 0; i < 32; ++i) {
      // Both ends of every group are there, so that no other scale fits as well.
      int q = i == 0 ? -8 : i == 1 ? 7 : int(random() % 16) - 8;
      row.push_back(0.125f * (group % 2 ? -15 : 8 + group) * q);
    }
  EXPECT_LE(squaredError(Int4(row).values(), row), 1e-10 * squaredError(Row(row.size()), row));
}

TEST(QuantizeInt4, RowsWithoutAScale) {
  for (float value : {0.0f, 1e-42f}) {
    Int4 zero(Row(70, value));
    EXPECT_EQ(zero.scale, 0);
    EXPECT_THAT(zero.q, Each(8));
    EXPECT_THAT(zero.multipliers, Each(testing::Ne(0)));
  }
  expectNoScale<Int4>(8);
}

TEST(QuantizeInt4, PowersOfTwoChangeTheScaleAlone) {
  Row row = gaussian(256, 3);
  Int4 plain(row);
  for (int exponent : {-90, -60, -21, 21, 40, 100}) {
    Row moved;
    for (float value : row)
      moved.push_back(std::ldexp(value, exponent));
    Int4 result(moved);
    EXPECT_EQ(result.q, plain.q) << exponent;
    EXPECT_EQ(result.multipliers, plain.multipliers) << exponent;
    EXPECT_EQ(result.scale, std::ldexp(plain.scale, exponent)) << exponent;
  }
}

TEST(QuantizeInt4, ZeroGroupsBesideOthers) {
  Row row(128);
  for (size_t i = 64; i < 96; ++i)
    row[i] = 1;
  Int4 result(row);
  EXPECT_THAT(std::vector(result.q.begin(), result.q.begin() + 64), Each(8));
  EXPECT_NEAR(result.values()[70], 1, 1e-6);
}

TEST(QuantizeInt4, OneHugeValueCostsItsOwnGroupAlone) {
  Row row = gaussian(1024, 7);
  row[500] = 1000;
  Int4 result(row);
  EXPECT_NEAR(result.values()[500], 1000, 5);
}

TEST(QuantizeInt4, LosesNoMoreThanItsBitsAreWorth) {
  double ours[3] = {}, plain[3] = {};
  for (unsigned seed = 0; seed < 64; ++seed)
    for (int kind = 0; kind < 3; ++kind) {
      Row row = kind == 0   ? gaussian(2048, seed)
                : kind == 1 ? laplace(2048, seed)
                            : withOutliers(2048, seed);
      double own = squaredError(Int4(row).values(), row),
             other = squaredError(roundedToQ4_0(row), row);
      ours[kind] += own;
      plain[kind] += other;
    }
  for (int kind = 0; kind < 3; ++kind)
    // A quarter of a bit less per value is worth a factor of sqrt(2); large numbers count more in
    // the search, so that their share of the plain error is smaller.
    EXPECT_LE(ours[kind], 1.2 * plain[kind]) << kind;
  // Small groups and odd lengths gain as well.
  for (size_t size : {32, 40, 200}) {
    double own = 0, other = 0;
    for (unsigned seed = 0; seed < 500; ++seed) {
      Row row = gaussian(size, seed);
      own += squaredError(Int4(row).values(), row);
      other += squaredError(roundedToQ4_0(row), row);
    }
    EXPECT_LE(own, 1.2 * other) << size;
  }
}

TEST(RoundToIntegers, GivesWhatTheIntegersStandFor) {
  mlir::MLIRContext context;
  context.loadDialect<MicaDialect>();
  Row row = gaussian(200, 9), eight = row, four = row;
  roundToIntegers(Int8Type::get(&context), eight);
  roundToIntegers(Int4Type::get(&context, 32), four);
  Int8 expected(row);
  for (size_t i = 0; i < row.size(); ++i)
    EXPECT_EQ(eight[i], expected.scale * expected.q[i]);
  EXPECT_EQ(four, Int4(row).values());
  Row again = eight;
  roundToIntegers(Int8Type::get(&context), again);
  EXPECT_LE(squaredError(again, eight), 1e-12 * squaredError(Row(row.size()), row));
}

} // namespace
