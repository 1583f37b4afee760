// What mica-benchmarks measures: functions of mica ops, with what a call must read and compute.
#pragma once

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
  std::string format; ///< of the weights, or of the cache: f32, bf16, int8 or int4
  std::string text;
  int64_t functions = 1;
  int64_t calls = 1; ///< of each function, with arguments of their own: where those are large
  std::vector<int64_t> rows;
  std::function<llvm::SmallVector<interp::Value>(mlir::func::FuncOp, int64_t rows)> arguments;
  std::function<Work(double weightBytes, int64_t rows)> work;
};

/// Products, experts and attention in the shapes of models.
std::vector<KernelBenchmark> kernelBenchmarks();

} // namespace mica::bench
