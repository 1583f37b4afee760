//===- Passes.h - the pass that sets the target CPU -------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_TARGET_PASSES_H
#define MICA_BACKENDS_CPU_TARGET_PASSES_H

#include "backends/cpu/target/CpuDialect.h"

#include "mlir/Pass/Pass.h"

namespace mica::cpu {

#define GEN_PASS_DECL
#include "backends/cpu/target/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "backends/cpu/target/Passes.h.inc"

/// The pass for a described target, which may have no LLVM name.
std::unique_ptr<mlir::Pass> createSetTarget(const TargetDescription &target);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_TARGET_PASSES_H
