//===- Passes.h - from stage loops to the LLVM dialect ----------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_PASSES_H
#define MICA_BACKENDS_CPU_CODEGEN_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mica::cpu {

#define GEN_PASS_DECL
#include "backends/cpu/codegen/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "backends/cpu/codegen/Passes.h.inc"

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_PASSES_H
