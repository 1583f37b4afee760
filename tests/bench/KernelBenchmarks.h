// What mica-benchmarks measures: functions of mica ops, with what a call must read and compute.
#ifndef MICA_TESTS_BENCH_KERNELBENCHMARKS_H
#define MICA_TESTS_BENCH_KERNELBENCHMARKS_H

#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelHarness.h"

#include <functional>
#include <string>
#include <vector>

namespace mica::bench {

/// The least that one call must do.
struct Work {
  double bytes = 0; ///< read from memory
  double flops = 0; ///< multiplications and additions in products
};

/// A module of functions @f0, @f1, ..., all alike, each with weights of its own. They are called in
/// turn, so that a call finds nothing of what it reads in a cache, as in a model.
struct KernelBenchmark {
  std::string name;
  std::string format; ///< of the products, whose limit it tells: f32, bf16 or int8
  std::string text;
  int64_t functions = 1;
  std::vector<int64_t> rows;
  /// How often each function is called with arguments of their own: where those are large.
  std::function<int64_t(int64_t rows)> calls = [](int64_t) { return 1; };
  std::function<llvm::SmallVector<interp::Value>(mlir::func::FuncOp, int64_t rows)> arguments;
  std::function<Work(double weightBytes, int64_t rows)> work;
};

/// What all functions of a benchmark read together: several times the largest last-level caches.
/// Less is for seeing that benchmarks run; it is set before they are made.
inline double farAboveCaches = 512 << 20;

/// How many things of so many bytes no cache holds.
int64_t copiesOf(double bytes);

/// All ways of storing matrices.
std::vector<test::Format> allFormats();

/// Bits of a weight of that format, scales included.
double bitsOf(const test::Format &format);

/// Whether rows of `k` weights are whole blocks of that format.
bool isWhole(const test::Format &format, int64_t k);

/// KernelBenchmark::format for weights of such.
std::string peaksOf(const test::Format &format);

/// The keys of a format; rows are of one size, because subnormal ones take time of their own.
inline test::Words evenWordsOf(const test::Format &format) {
  return test::wordsOf(format, /*uneven=*/false);
}

/// Rows that an op of one row after the other reads: of 512 none is left in a cache, of eight all
/// are, as in a model, and the share of the roofline may exceed 1.
inline constexpr int64_t cachedAndOther[] = {8, 512};

/// Columns and depth of a product.
struct Shape {
  int64_t n, k;
};
/// Llama-3.2-1B: q with k and v, down.
inline constexpr Shape productShapes[] = {{3072, 2048}, {2048, 8192}};
/// Rows of products by oneDNN.
inline constexpr int64_t libraryRows[] = {16, 32, 128, 512};

/// Every kernel, in the shapes of models.
std::vector<KernelBenchmark> productBenchmarks();
std::vector<KernelBenchmark> rowBenchmarks();
std::vector<KernelBenchmark> attentionBenchmarks();
std::vector<KernelBenchmark> kernelBenchmarks();

} // namespace mica::bench

#endif // MICA_TESTS_BENCH_KERNELBENCHMARKS_H
