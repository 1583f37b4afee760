//===- KernelText.h - generated kernels for CompiledModule.h ----*- C++ -*-===//
#ifndef MICA_TESTS_UNIT_BACKENDS_CPU_KERNELS_ATTENTION_KERNELTEXT_H
#define MICA_TESTS_UNIT_BACKENDS_CPU_KERNELS_ATTENTION_KERNELTEXT_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "tests/unit/backends/cpu/codegen/CompiledModule.h"

namespace mica::test {

/// A context with all dialects of the compiler.
std::unique_ptr<mlir::MLIRContext> makeKernelContext();

/// A module at stage `loops`, and the bytes of its scratch memory.
struct Loops {
  std::string text;
  int64_t scratchPerRow, scratchFixed;
};
llvm::Expected<Loops> lowerToLoops(llvm::StringRef kernels, const cpu::TargetDescription &target);

} // namespace mica::test

#endif // MICA_TESTS_UNIT_BACKENDS_CPU_KERNELS_ATTENTION_KERNELTEXT_H
