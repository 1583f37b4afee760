#include "backends/cpu/device/Matmul.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <oneapi/dnnl/dnnl.hpp>
#include <random>
#include <tuple>

using namespace mica::rt;

namespace {
uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float fromBf16(uint16_t value) { return std::bit_cast<float>(uint32_t(value) << 16); }

int64_t roundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/// The storage of a format's operands.
struct Storage {
  size_t element;      ///< bytes
  int64_t depth, unit; ///< consecutive values along K; padding of K
};

Storage storageOf(MatmulFormat format) {
  switch (format) {
  case MatmulFormat::F32:
    return {4, 1, 16};
  case MatmulFormat::Bf16:
    return {2, 2, 32};
  }
  return {};
}

/// Operands with guard values between rows, and the expected result. All numbers are held in f32.
struct Problem {
  explicit Problem(const MatmulShape &shape) : shape(shape), storage(storageOf(shape.format)) {
    std::mt19937 random(static_cast<unsigned>(shape.m * 7919 + shape.n * 31 + shape.k));
    std::uniform_real_distribution<float> uniform(-1, 1);
    auto value = [&] {
      float real = uniform(random);
      return shape.format == MatmulFormat::Bf16 ? fromBf16(toBf16(real)) : real;
    };
    a.assign(static_cast<size_t>(shape.m * shape.lda), std::nanf(""));
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.k; ++j)
        a[i * shape.lda + j] = value();
    w.assign(static_cast<size_t>(roundUp(shape.n, 64) * roundUp(shape.k, storage.unit)), 0);
    for (int64_t j = 0; j < shape.k; ++j)
      for (int64_t n = 0; n < shape.n; ++n)
        w[packedIndex(j, n)] = value();
    c.resize(static_cast<size_t>(shape.m * shape.ldc));
    for (float &element : c)
      element = value();
  }

  /// The index of element (k, n) of the matrix [K, N] in packed form.
  int64_t packedIndex(int64_t k, int64_t n) const {
    int64_t groups = roundUp(shape.k, storage.unit) / storage.depth;
    return ((n / 64 * groups + k / storage.depth) * 64 + n % 64) * storage.depth +
           k % storage.depth;
  }

  double expected(int64_t i, int64_t n) const {
    double sum = shape.accumulate ? c[i * shape.ldc + n] : 0;
    for (int64_t j = 0; j < shape.k; ++j)
      sum += double(a[i * shape.lda + j]) * double(w[packedIndex(j, n)]);
    return sum;
  }

  /// `values` as f32 or bf16, with `element` bytes each.
  static std::vector<uint8_t> stored(std::vector<float> values, size_t bytes) {
    std::vector<uint8_t> memory(values.size() * bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      uint16_t half = toBf16(values[i]);
      std::memcpy(&memory[i * bytes], bytes == 2 ? static_cast<void *>(&half) : &values[i], bytes);
    }
    return memory;
  }

  std::vector<float> run(Matmul &matmul) const {
    std::vector<uint8_t> left = stored(a, storage.element), right = stored(w, storage.element);
    std::vector<float> result = c;
    Status done = matmul.run(shape, left.data(), right.data(), result.data());
    EXPECT_TRUE(done) << done.error().message;
    return result;
  }

  MatmulShape shape;
  Storage storage;
  std::vector<float> a, w, c;
};

void expectProduct(const Problem &problem, const std::vector<float> &result) {
  const MatmulShape &s = problem.shape;
  double tolerance = 4e-7 * static_cast<double>(s.k) + 1e-6;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t n = 0; n < s.n; ++n)
      ASSERT_NEAR(result[i * s.ldc + n], problem.expected(i, n), tolerance)
          << s.m << " x " << s.n << " x " << s.k << " at " << i << ", " << n;
    for (int64_t n = s.n; n < s.ldc; ++n)
      ASSERT_EQ(result[i * s.ldc + n], problem.c[i * s.ldc + n]) << "written past row " << i;
  }
}

/// Whether oneDNN uses these instructions: the CPU may have them, but ONEDNN_MAX_CPU_ISA may
/// disable them. The number of an instruction set includes the bits of its subsets.
bool multipliesWith(dnnl::cpu_isa wanted) {
  auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

class MatmulTest : public testing::TestWithParam<MatmulFormat> {
protected:
  void SetUp() override {
    if (GetParam() == MatmulFormat::Bf16 && !multipliesWith(dnnl::cpu_isa::avx512_core_bf16))
      GTEST_SKIP() << "oneDNN has no AVX512-BF16 here: bf16 products are not tested";
  }
  Pool pool{2};
  Matmul matmul{pool};
};

TEST_P(MatmulTest, OddShapes) {
  for (int64_t m : {1, 2, 5, 16, 17, 33})
    for (int64_t n : {1, 63, 64, 65, 130})
      for (int64_t k : {1, 15, 16, 31, 33, 64, 172}) {
        Problem problem({m, n, k, k, n, GetParam(), false});
        expectProduct(problem, problem.run(matmul));
      }
}

TEST_P(MatmulTest, StridedOperands) {
  for (int64_t m : {1, 7, 40}) {
    Problem problem({m, 96, 80, 80 + 13, 96 + 5, GetParam(), false});
    expectProduct(problem, problem.run(matmul));
  }
}

TEST_P(MatmulTest, Accumulates) {
  for (int64_t m : {1, 3, 32}) {
    Problem problem({m, 70, 48, 50, 77, GetParam(), true});
    expectProduct(problem, problem.run(matmul));
  }
}

TEST_P(MatmulTest, EmptyOperands) {
  Problem problem({0, 64, 32, 32, 64, GetParam(), false});
  problem.run(matmul);
  EXPECT_EQ(matmul.primitives(), 0u);
}

TEST_P(MatmulTest, LargeProductOnFourThreads) {
  Pool four(4);
  Matmul shared(four);
  Problem problem({64, 320, 512, 512, 320, GetParam(), false});
  expectProduct(problem, problem.run(shared));
}

/// Matmuls with a large K and few blocks of rows and columns: a library might split the sums along
/// K.
TEST_P(MatmulTest, ThreadsChangeNoBit) {
  // Programs use oneDNN if the target has AVX-512 (stageOptionsOf in Compiler.cpp).
  if (!multipliesWith(dnnl::cpu_isa::avx512_core))
    GTEST_SKIP() << "oneDNN has no AVX-512 here, and its AVX2 kernels crash in products this deep";
  for (auto [m, n, k] :
       {std::tuple(17, 64, 16384), std::tuple(17, 320, 8192), std::tuple(130, 96, 3000),
        std::tuple(17, 64, 20480), std::tuple(300, 192, 20480), std::tuple(33, 1500, 1040)}) {
    Problem problem({m, n, k, k, n, GetParam(), false});
    std::vector<float> expected = problem.run(matmul);
    for (unsigned threads : {1u, 3u, 8u, 16u, 24u, 40u}) {
      Pool others(threads);
      Matmul shared(others);
      EXPECT_EQ(problem.run(shared), expected)
          << threads << " threads, " << m << " x " << n << " x " << k;
    }
  }
}

/// A rank has some columns of a matrix, and the logits of one process. With few columns, K is so
/// much larger than the other extents that oneDNN might split the sums. Programs call it for more
/// than 32 rows (PhaseRows); for a single one, sums do depend on the columns and threads.
TEST_P(MatmulTest, ColumnsChangeNoBit) {
  if (!multipliesWith(dnnl::cpu_isa::avx512_core))
    GTEST_SKIP() << "oneDNN has no AVX-512 here";
  constexpr int64_t n = 1024;
  for (int64_t k : {1040, 8192, 28672}) {
    Problem problem({130, n, k, k, n, GetParam(), false});
    for (int64_t rows : {33, 130}) {
      problem.shape = {rows, n, k, k, n, GetParam(), false};
      std::vector<float> whole = problem.run(matmul);
      for (int64_t columns : {n / 2, n / 8})
        for (unsigned threads : {1u, 16u}) {
          Pool others(threads);
          Matmul shared(others);
          // The columns are stored in groups of 64, so the first ones are the beginning.
          problem.shape = {rows, columns, k, k, columns, GetParam(), false};
          std::vector<float> part = problem.run(shared);
          for (int64_t row = 0; row < rows; ++row)
            ASSERT_TRUE(
                std::equal(&part[row * columns], &part[row * columns] + columns, &whole[row * n]))
                << "row " << row << " of " << rows << ", " << columns << " of " << n
                << " columns, K " << k << ", " << threads << " threads";
        }
    }
  }
}

/// The order of generated kernels (sumSegment in backends/cpu/layout): other releases of oneDNN
/// may use another one.
TEST(Matmul, AddsInSegmentsAlongK) {
  if (!multipliesWith(dnnl::cpu_isa::avx512_core))
    GTEST_SKIP() << "oneDNN has no AVX-512 here";
  Pool pool(2);
  Matmul matmul(pool);
  for (auto [m, n, k] :
       {std::tuple(33, 64, 512), std::tuple(33, 70, 520), std::tuple(300, 64, 1024),
        std::tuple(64, 1024, 1040), std::tuple(33, 576, 1536), std::tuple(512, 64, 8192),
        std::tuple(100, 96, 3000)}) {
    Problem problem({m, n, k, k, n, MatmulFormat::F32, false});
    std::vector<float> sums = problem.run(matmul);
    int64_t segment = k > 1024 ? 1024 : 512;
    for (int64_t row : {0, m - 1})
      for (int64_t column : {0, n - 1}) {
        float total = 0;
        for (int64_t from = 0; from < k; from += segment) {
          float sum = 0;
          for (int64_t j = from; j < std::min<int64_t>(k, from + segment); ++j)
            sum = std::fma(problem.a[row * k + j], problem.w[problem.packedIndex(j, column)], sum);
          total += sum;
        }
        EXPECT_EQ(sums[row * n + column], total) << m << " x " << n << " x " << k;
      }
  }
}

TEST_P(MatmulTest, RunsInlineInsideABody) {
  Problem problem({8, 64, 64, 64, 64, GetParam(), false});
  struct Context {
    const Problem &problem;
    Matmul &matmul;
  } context{problem, matmul};
  pool.parallelFor(
      [](void *opaque, int64_t begin, int64_t end) {
        auto &self = *static_cast<Context *>(opaque);
        for (int64_t i = begin; i < end; ++i)
          expectProduct(self.problem, self.problem.run(self.matmul));
      },
      &context, 4);
}

TEST_P(MatmulTest, OnePrimitivePerShapeAndABound) {
  Problem problem({2, 64, 32, 32, 64, GetParam(), false});
  problem.run(matmul);
  problem.run(matmul);
  EXPECT_EQ(matmul.primitives(), 1u);
  for (int64_t m = 1; m <= static_cast<int64_t>(Matmul::capacity) + 20; ++m) {
    Problem other({m, 64, 32, 32, 64, GetParam(), false});
    other.run(matmul);
  }
  EXPECT_EQ(matmul.primitives(), Matmul::capacity);
  expectProduct(problem, problem.run(matmul));
}

std::string formatName(const testing::TestParamInfo<MatmulFormat> &info) {
  constexpr const char *names[] = {"F32", "Bf16"};
  return names[static_cast<int>(info.param)];
}
TEST(Matmul, LimitsThreadsSoThatSumsAreNotSplit) {
  auto expected = [](MatmulFormat format, int64_t m, int64_t n, int64_t k, int threads,
                     bool tileRegisters = false) {
    return expectedThreads({m, n, k, k, n, format, false}, threads, tileRegisters);
  };
  using enum MatmulFormat;
  EXPECT_EQ(expected(Bf16, 64, 512, 2048, 40), 40);
  EXPECT_EQ(expected(Bf16, 64, 512, 2048, 40, true), 15);
  EXPECT_EQ(expected(Bf16, 64, 512, 2048, 8, true), 8);
  EXPECT_EQ(expected(Bf16, 64, 512, 1024, 40, true), 40);
  EXPECT_EQ(expected(F32, 64, 192, 20000, 40), 3);
  EXPECT_EQ(expected(F32, 64, 193, 20000, 40), 4);
  EXPECT_EQ(expected(F32, 64, 192, 19999, 40), 40);
  EXPECT_EQ(expected(F32, 513, 192, 20000, 40), 40);
  EXPECT_EQ(expected(F32, 64, 513, 20000, 40), 40);
}

INSTANTIATE_TEST_SUITE_P(Formats, MatmulTest,
                         testing::Values(MatmulFormat::F32, MatmulFormat::Bf16), formatName);
} // namespace
