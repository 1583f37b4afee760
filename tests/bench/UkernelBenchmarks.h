// Products by oneDNN's experimental ukernel, which programs do not use: what it would bring them.
#ifndef MICA_TESTS_BENCH_UKERNELBENCHMARKS_H
#define MICA_TESTS_BENCH_UKERNELBENCHMARKS_H

#include "tests/bench/KernelBenchmarks.h"

#include "backends/runtime/abi/WorkPool.h"

namespace mica::bench {

/// Like KernelBenchmark, of a function of C++.
struct UkernelBenchmark {
  std::string name, format;
  std::vector<int64_t> rows;
  /// Calls to be made in turn. Throws std::exception where this machine or oneDNN cannot.
  std::function<std::vector<std::function<void()>>(int64_t rows)> calls;
  std::function<Work(int64_t rows)> work;
};

/// On `pool`, which must outlive them. None where oneDNN was built without ukernels, as it is by
/// default (tools/setup/onednn.sh).
std::vector<UkernelBenchmark> ukernelBenchmarks(rt::WorkPool &pool);

} // namespace mica::bench

#endif // MICA_TESTS_BENCH_UKERNELBENCHMARKS_H
