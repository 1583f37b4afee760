//===- Pipeline.h - from stage `fused` to stage `kernels` -------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_DISPATCH_PIPELINE_H
#define MICA_BACKENDS_CPU_DISPATCH_PIPELINE_H

#include "backends/cpu/dispatch/Passes.h"
#include "passes/pipelines/Stages.h"

namespace mica::cpu {

/// Stage `fused` -> `kernels`, for the target that the module names.
void buildFusedToKernels(mlir::OpPassManager &pm, const StageOptions &options,
                         const SelectKernelsOptions &select = {});

/// Registers the passes, and the pipelines `mica-fused-to-kernels` and `mica-to-kernels`.
void registerDispatchPasses();

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DISPATCH_PIPELINE_H
