//===- IntegerPanelTest.cpp - packed integers against a slow reading ------===//

#include "ir/Mica/Quantize.h"
#include "mlir/AsmParser/AsmParser.h"
#include "tests/unit/backends/cpu/pack/PackFixture.h"

#include "gmock/gmock.h"

using namespace mica;
using namespace mica::cpu;
using testing::HasSubstr;

namespace {

/// A matrix of integers as it stands in a program, read byte by byte.
struct Unpacked {
  int64_t rows, columns;  ///< padded
  std::vector<int32_t> q; ///< of !mica.int4 with their multipliers
  std::vector<float> scales;
  std::vector<int32_t> sums;

  float value(int64_t row, int64_t column) const { return scales[row] * q[row * columns + column]; }
};

template <typename T> std::vector<T> readTail(llvm::ArrayRef<uint8_t> &bytes, int64_t count) {
  std::vector<T> result(count);
  std::memcpy(result.data(), bytes.data(), count * sizeof(T));
  bytes = bytes.drop_front(count * sizeof(T));
  return result;
}

/// Takes a matrix [n, k] off the front of `bytes`.
Unpacked unpack(llvm::ArrayRef<uint8_t> &bytes, bool int4, int64_t n, int64_t k) {
  Unpacked m{(n + 63) / 64 * 64, (k + 63) / 64 * 64, {}, {}, {}};
  m.q.resize(m.rows * m.columns);
  for (int64_t block = 0; block < m.rows; block += 64)
    for (int64_t group = 0; group < m.columns; group += int4 ? 32 : 4) {
      auto multipliers = int4 ? bytes.take_front(64) : bytes.take_front(0);
      bytes = bytes.drop_front(multipliers.size());
      for (int64_t lane = 0; lane < (int4 ? 4 : 1); ++lane)
        for (int64_t row = 0; row < 64; ++row)
          for (int64_t b = 0; b < 4; ++b, bytes = bytes.drop_front()) {
            int32_t *q = &m.q[(block + row) * m.columns + group + 8 * lane + b];
            q[0] = int4 ? int8_t(multipliers[row]) * (bytes[0] % 16 - 8) : int8_t(bytes[0]);
            if (int4)
              q[4] = int8_t(multipliers[row]) * (bytes[0] / 16 - 8);
          }
    }
  m.scales = readTail<float>(bytes, m.rows);
  m.sums = readTail<int32_t>(bytes, m.rows);
  return m;
}

class IntegerPanelTest : public PackTest, public testing::WithParamInterface<bool> {
protected:
  bool int4 = GetParam();
  std::string element = int4 ? "!mica.int4<group = 32>" : "!mica.int8";

  std::string type(const std::string &shape) { return "tensor<" + shape + "x" + element + ">"; }

  /// Rows are what the interpreter makes of them, padding is zero, sums are sums.
  void expectRows(const Unpacked &m, const std::vector<float> &values, int64_t columns) {
    mlir::Type quantized = mlir::parseType(element, &context);
    int64_t rows = values.size() / columns;
    for (int64_t row = 0; row < m.rows; ++row) {
      std::vector<float> expected(m.columns);
      if (row < rows) {
        llvm::copy(llvm::ArrayRef(values).slice(row * columns, columns), expected.begin());
        roundToIntegers(quantized, llvm::MutableArrayRef(expected).take_front(columns));
      }
      int32_t sum = 0;
      for (int64_t column = 0; column < m.columns; ++column) {
        sum += m.q[row * m.columns + column];
        ASSERT_EQ(m.value(row, column), expected[column]) << row << ", " << column;
      }
      ASSERT_EQ(m.sums[row], sum) << row;
      if (row >= rows)
        ASSERT_EQ(m.scales[row], 0) << row;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Types, IntegerPanelTest, testing::Bool(),
                         [](const auto &info) { return info.param ? "Int4" : "Int8"; });

TEST_P(IntegerPanelTest, MatricesOfOddShapesFromEveryType) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{1, 1},
                               {64, 64},
                               {65, 31},
                               {172, 64},
                               {3, 1000},
                               {200, 33},
                               {130, 97}})
    for (WeightType from : {WeightType::F32, WeightType::BF16, WeightType::F16}) {
      source = MemorySource();
      source.add("w", from, {rows, columns});
      std::string shape = std::to_string(rows) + "x" + std::to_string(columns);
      std::vector<uint8_t> bytes = llvm::cantFail(pack("mica.weight @w at 0 : " + type(shape)));
      auto stored = mlir::cast<mlir::RankedTensorType>(mlir::parseType(type(shape), &context));
      ASSERT_EQ(int64_t(bytes.size()), getStoredBytes(stored)) << shape;
      llvm::ArrayRef<uint8_t> rest = bytes;
      expectRows(unpack(rest, int4, rows, columns), source.values("w"), columns);
      ASSERT_FALSE(HasFatalFailure()) << shape;
    }
}

TEST_P(IntegerPanelTest, LargeMatrixInSeveralBatchesIsTheSameOnAnyNumberOfThreads) {
  source.add("w", WeightType::BF16, {3000, 2050});
  std::string text = "mica.weight @w at 0 : " + type("3000x2050");
  std::vector<uint8_t> one = llvm::cantFail(pack(text, 1)), two = llvm::cantFail(pack(text, 2)),
                       five = llvm::cantFail(pack(text, 5));
  llvm::ArrayRef<uint8_t> rest = one;
  expectRows(unpack(rest, int4, 3000, 2050), source.values("w"), 2050);
  EXPECT_TRUE(one == two && one == five);
}

TEST_P(IntegerPanelTest, ConcatJoinsAndInterleaveAlternates) {
  source.add("a", WeightType::F32, {72, 40});
  source.add("b", WeightType::F32, {72, 40});
  const std::vector<float> &a = source.values("a"), &b = source.values("b");
  std::vector<float> joined = a;
  llvm::append_range(joined, b);
  std::vector<uint8_t> bytes =
      llvm::cantFail(pack(R"(mica.weight @w from ["a", "b"] concat at 0 : )" + type("144x40")));
  llvm::ArrayRef<uint8_t> rest = bytes;
  expectRows(unpack(rest, int4, 144, 40), joined, 40);

  std::vector<float> alternating;
  for (int64_t block : {0, 64})
    for (const std::vector<float> *part : {&a, &b})
      for (int64_t i = block * 40; i < (block + 64) * 40; ++i)
        alternating.push_back(i < int64_t(part->size()) ? (*part)[i] : 0);
  bytes =
      llvm::cantFail(pack(R"(mica.weight @w from ["a", "b"] interleave at 0 : )" + type("256x40")));
  rest = bytes;
  expectRows(unpack(rest, int4, 256, 40), alternating, 40);
}

TEST_P(IntegerPanelTest, EveryMatrixOfAStackHasItsOwnTail) {
  std::string names;
  for (int i = 0; i < 40; ++i) {
    std::string name = "e" + std::to_string(i);
    source.add(name, WeightType::BF16, {100, 1030});
    names += (i ? ", \"" : "\"") + name + "\"";
  }
  std::vector<uint8_t> bytes = llvm::cantFail(
      pack("mica.weight @w from [" + names + "] stack at 0 : " + type("40x100x1030")));
  llvm::ArrayRef<uint8_t> rest = bytes;
  for (int i = 0; i < 40; ++i)
    expectRows(unpack(rest, int4, 100, 1030), source.values("e" + std::to_string(i)), 1030);
  EXPECT_TRUE(rest.empty());
}

TEST_P(IntegerPanelTest, RefusesWhatIsNoFiniteNumber) {
  for (float poison : {NAN, INFINITY}) {
    source = MemorySource();
    source.add("a", WeightType::BF16, {70, 20});
    source.poison("a", 1399, poison);
    EXPECT_EQ(errorOf("mica.weight @a at 0 : " + type("70x20")),
              R"(tensor "a" holds NaN or infinity, check the checkpoint)");
  }
}

} // namespace
