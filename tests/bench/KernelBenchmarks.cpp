// What mica-benchmarks measures: tables of functions of mica ops.
#include "tests/bench/KernelBenchmarks.h"

#include <cmath>

using namespace mica::test;

namespace mica::bench {

int64_t copiesOf(double bytes) {
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(farAboveCaches / bytes)));
}

std::vector<Format> allFormats() {
  std::vector<Format> all(std::begin(kFormats), std::end(kFormats));
  all.insert(all.end(), std::begin(kBlockFormats), std::end(kBlockFormats));
  return all;
}

std::string peaksOf(const Format &format) {
  llvm::StringRef rows = format.rows;
  return rows.starts_with("!") ? "int8" : rows.str();
}

std::vector<KernelBenchmark> kernelBenchmarks() {
  std::vector<KernelBenchmark> all;
  for (auto part : {productBenchmarks, rowBenchmarks, attentionBenchmarks})
    for (KernelBenchmark &benchmark : part())
      all.push_back(std::move(benchmark));
  return all;
}

} // namespace mica::bench
