//===- Passes.h - from stage `fused` to stage `kernels` ---------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_DISPATCH_PASSES_H
#define MICA_BACKENDS_CPU_DISPATCH_PASSES_H

#include "backends/cpu/dispatch/CostModel.h"
#include "passes/pipelines/Stages.h"

namespace mica::cpu {

#define GEN_PASS_DECL
#include "backends/cpu/dispatch/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "backends/cpu/dispatch/Passes.h.inc"

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_DISPATCH_PASSES_H
