// The benchmarks of mica-benchmarks: functions of mica ops, with the minimum memory traffic and
// work of a call.
#ifndef MICA_TESTS_BENCH_KERNELBENCHMARKS_H
#define MICA_TESTS_BENCH_KERNELBENCHMARKS_H

#include "tests/unit/backends/cpu/lowering/Formats.h"
#include "tests/unit/backends/cpu/lowering/KernelHarness.h"

#include <functional>
#include <string>
#include <vector>

namespace mica::bench {

/// The minimum cost of a call.
struct Work {
  double bytes = 0; ///< read from memory
  double flops = 0; ///< multiplications and additions in matmuls
};

/// A module of equal functions @f0, @f1, ..., each with separate weights. They are called in turn,
/// so that no call finds its weights in a cache, as in a model.
struct KernelBenchmark {
  std::string name;
  std::string format; ///< of the matmuls, whose limit it selects: f32, bf16 or int8
  std::string text;
  int64_t functions = 1;
  std::vector<int64_t> rows;
  /// The number of calls of each function with separate arguments, if those are large.
  std::function<int64_t(int64_t rows)> calls = [](int64_t) { return 1; };
  std::function<llvm::SmallVector<interp::Value>(mlir::func::FuncOp, int64_t rows)> arguments;
  std::function<Work(double weightBytes, int64_t rows)> work;
};

/// The total weights read by all functions of a benchmark: several times the largest last-level
/// caches. Set it before creating benchmarks; a smaller value only tests that they run.
inline double farAboveCaches = 512 << 20;

/// The number of objects of that size that exceed all caches.
int64_t copiesOf(double bytes);

/// All storage formats of matrices.
std::vector<test::Format> allFormats();

/// Bits per weight of that format, including scales.
double bitsOf(const test::Format &format);

/// Whether rows of `k` weights are whole blocks of that format.
bool isWhole(const test::Format &format, int64_t k);

/// KernelBenchmark::format for weights of that format.
std::string peaksOf(const test::Format &format);

/// The placeholders of a format; scales of rows are equal, because subnormal numbers are slow.
inline test::Words evenWordsOf(const test::Format &format) {
  return test::wordsOf(format, /*uneven=*/false);
}

/// Numbers of rows of an op that works row by row: of 512 rows none remains in a cache; eight rows
/// remain cached, as in a model, so that the share of the roofline may exceed 1.
inline constexpr int64_t cachedAndOther[] = {8, 512};

/// N and K of a matmul.
struct Shape {
  int64_t n, k;
};
/// Llama-3.2-1B: q with k and v; down.
inline constexpr Shape productShapes[] = {{3072, 2048}, {2048, 8192}};
/// Numbers of rows of matmuls by oneDNN.
inline constexpr int64_t libraryRows[] = {16, 32, 128, 512};

/// All kernels, in the shapes of models.
std::vector<KernelBenchmark> productBenchmarks();
std::vector<KernelBenchmark> rowBenchmarks();
std::vector<KernelBenchmark> attentionBenchmarks();
std::vector<KernelBenchmark> stateBenchmarks();
std::vector<KernelBenchmark> kernelBenchmarks();

} // namespace mica::bench

#endif // MICA_TESTS_BENCH_KERNELBENCHMARKS_H
