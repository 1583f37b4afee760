//===- Pipeline.h - from stage loops to stage llvm --------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_CODEGEN_PIPELINE_H
#define MICA_BACKENDS_CPU_CODEGEN_PIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace mica::cpu {

/// Appends the passes from stage `loops` to stage `llvm`.
void addLoopsToLlvmPasses(mlir::OpPassManager &passes);

/// Registers the passes, and the pipeline `mica-loops-to-llvm`.
void registerCodegenPasses();

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_CODEGEN_PIPELINE_H
