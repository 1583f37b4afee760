//===- Pipeline.h - from stage `kernels` to stage `loops` -------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_LOWERING_PIPELINE_H
#define MICA_BACKENDS_CPU_LOWERING_PIPELINE_H

#include "mlir/Pass/PassManager.h"

namespace mica::cpu {

/// Appends the passes from stage `kernels` to stage `loops`, for the target that the module names.
void buildLoopsPipeline(mlir::OpPassManager &pm);

/// Registers the passes, and the pipeline `mica-kernels-to-loops`.
void registerLoweringPasses();

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_PIPELINE_H
