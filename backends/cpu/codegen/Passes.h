//===- Passes.h - from stage loops to the LLVM dialect ----------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_PASSES_H
#define MICA_BACKENDS_CPU_CODEGEN_PASSES_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/ArrayRef.h"

namespace mica::cpu {

#define GEN_PASS_DECL
#include "backends/cpu/codegen/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "backends/cpu/codegen/Passes.h.inc"

/// Everything between stage `loops` and stage `llvm`, in order.
void addLoopsToLlvmPasses(mlir::OpPassManager &passes);

/// Registers the passes, and the pipeline `mica-loops-to-llvm`.
void registerCodegenPasses();

/// The symbols that the model's code may leave undefined: functions of libc that LLVM calls on its
/// own. Everything else is an error; the runtime is called through a table (RuntimeSlots.h).
llvm::ArrayRef<llvm::StringRef> librarySymbols();

/// The name of the function that a model's shared object exports.
inline constexpr const char *kForwardSymbol = "mica_forward";

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_PASSES_H
