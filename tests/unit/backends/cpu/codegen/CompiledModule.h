//===- CompiledModule.h - modules at stage loops, compiled and loaded -----===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_CODEGEN_COMPILEDMODULE_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_CODEGEN_COMPILEDMODULE_H

#include "tests/unit/backends/cpu/codegen/LoadedModel.h"

#include <array>

namespace mica::test {

/// A memref descriptor of rank R over `data`.
template <size_t R> struct Descriptor {
  void *allocated, *aligned;
  int64_t offset = 0;
  std::array<int64_t, R> sizes, strides;

  Descriptor(void *data, std::array<int64_t, R> shape)
      : allocated(data), aligned(data), sizes(shape) {
    int64_t stride = 1;
    for (size_t i = R; i-- > 0; stride *= shape[i])
      strides[i] = stride;
  }
};

/// The shared object of a module at stage `loops`.
llvm::Expected<llvm::SmallVector<char, 0>> compile(llvm::StringRef text,
                                                   const cpu::TargetDescription &target);

/// The calls of `recordingRuntime` since the last `clear`.
struct RuntimeCalls {
  std::vector<int64_t> tasks;
  struct Matmul {
    const void *a, *w, *c;
    int64_t m, n, k, lda, ldc;
    int32_t format, accumulate;
  };
  std::vector<Matmul> products;
  struct Probe {
    std::string name;
    const void *x;
    int64_t layer, rows, columns, stride;
    int32_t numbers;
  };
  std::vector<Probe> probes;
  void clear() { *this = {}; }
};
extern RuntimeCalls calls;

/// Runs tasks on one thread in two parts, like a pool with two threads, and computes no matmuls.
extern const rt::RuntimeTable recordingRuntime;

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_CODEGEN_COMPILEDMODULE_H
