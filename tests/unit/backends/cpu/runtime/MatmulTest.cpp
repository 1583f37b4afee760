#include "backends/cpu/runtime/Matmul.h"
#include "backends/cpu/runtime/Cpu.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <random>

using namespace mica::rt;

namespace {
uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float fromBf16(uint16_t value) { return std::bit_cast<float>(uint32_t(value) << 16); }

int64_t roundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

/// Where element (k, n) of a [K, N] matrix stands in the packed form.
int64_t packedIndex(MatmulFormat format, int64_t k, int64_t n, int64_t depth) {
  if (format != MatmulFormat::Bf16)
    return (n / 64 * roundUp(depth, 16) + k) * 64 + n % 64;
  return ((n / 64 * (roundUp(depth, 32) / 2) + k / 2) * 64 + n % 64) * 2 + k % 2;
}

/// Operands with guard values between the rows, and what the product must be.
struct Problem {
  explicit Problem(const MatmulShape &shape) : shape(shape) {
    std::mt19937 random(static_cast<unsigned>(shape.m * 7919 + shape.n * 31 + shape.k));
    std::uniform_real_distribution<float> uniform(-1, 1);
    bool rounded = shape.format != MatmulFormat::F32;
    auto value = [&] { return rounded ? fromBf16(toBf16(uniform(random))) : uniform(random); };
    a.assign(static_cast<size_t>(shape.m * shape.lda), std::nanf(""));
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.k; ++j)
        a[i * shape.lda + j] = value();
    w.assign(static_cast<size_t>(roundUp(shape.n, 64) * roundUp(shape.k, 32)), 0);
    for (int64_t j = 0; j < shape.k; ++j)
      for (int64_t n = 0; n < shape.n; ++n)
        w[packedIndex(shape.format, j, n, shape.k)] = value();
    c.resize(static_cast<size_t>(shape.m * shape.ldc));
    for (float &element : c)
      element = uniform(random);
    for (float element : a)
      a16.push_back(toBf16(element));
    for (float element : w)
      w16.push_back(toBf16(element));
  }

  double expected(int64_t i, int64_t n) const {
    double sum = shape.accumulate ? c[i * shape.ldc + n] : 0;
    for (int64_t j = 0; j < shape.k; ++j)
      sum += double(a[i * shape.lda + j]) * double(w[packedIndex(shape.format, j, n, shape.k)]);
    return sum;
  }

  std::vector<float> run(Matmul &matmul) const {
    std::vector<float> result = c;
    const void *left =
        shape.format == MatmulFormat::Bf16 ? static_cast<const void *>(a16.data()) : a.data();
    const void *right =
        shape.format == MatmulFormat::F32 ? static_cast<const void *>(w.data()) : w16.data();
    Status done = matmul.run(shape, left, right, result.data());
    EXPECT_TRUE(done) << done.error().message;
    return result;
  }

  MatmulShape shape;
  std::vector<float> a, w, c;
  std::vector<uint16_t> a16, w16;
};

void expectProduct(const Problem &problem, const std::vector<float> &result) {
  const MatmulShape &s = problem.shape;
  double tolerance = 4e-7 * static_cast<double>(s.k) + 1e-6;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t n = 0; n < s.n; ++n)
      ASSERT_NEAR(result[i * s.ldc + n], problem.expected(i, n), tolerance)
          << s.m << " x " << s.n << " x " << s.k << " at " << i << ", " << n;
    for (int64_t n = s.n; n < s.ldc; ++n)
      ASSERT_EQ(result[i * s.ldc + n], problem.c[i * s.ldc + n]) << "written behind row " << i;
  }
}

class MatmulTest : public testing::TestWithParam<MatmulFormat> {
protected:
  void SetUp() override {
    if (GetParam() == MatmulFormat::Bf16 && !cpuHas("avx512bf16"))
      GTEST_SKIP() << "this CPU has no AVX512-BF16: bf16 products are not tested";
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

TEST_P(MatmulTest, NothingToDo) {
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
  constexpr const char *names[] = {"F32", "Bf16", "F32Bf16"};
  return names[static_cast<int>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Formats, MatmulTest,
                         testing::Values(MatmulFormat::F32, MatmulFormat::Bf16,
                                         MatmulFormat::F32Bf16),
                         formatName);
} // namespace
