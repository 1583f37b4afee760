// Matmuls by oneDNN's experimental ukernel API, which programs do not use, for comparison.
#ifndef MICA_TESTS_BENCH_UKERNELBENCHMARKS_H
#define MICA_TESTS_BENCH_UKERNELBENCHMARKS_H

#include "tests/bench/KernelBenchmarks.h"

#include "backends/runtime/abi/WorkPool.h"

namespace mica::bench {

/// Like KernelBenchmark, for a C++ function.
struct UkernelBenchmark {
  std::string name, format;
  std::vector<int64_t> rows;
  /// Calls to be made in turn. Throws std::exception if this machine or oneDNN does not support
  /// them.
  std::function<std::vector<std::function<void()>>(int64_t rows)> calls;
  std::function<Work(int64_t rows)> work;
};

/// Benchmarks on `pool`, which must outlive them. None if oneDNN was built without ukernels, as by
/// default (tools/setup/onednn.sh).
std::vector<UkernelBenchmark> ukernelBenchmarks(rt::WorkPool &pool);

} // namespace mica::bench

#endif // MICA_TESTS_BENCH_UKERNELBENCHMARKS_H
