//===- CpuDialect.h - the target CPU of a module ----------------*- C++ -*-===//
#ifndef MICA_BACKENDS_CPU_TARGET_CPUDIALECT_H
#define MICA_BACKENDS_CPU_TARGET_CPUDIALECT_H

#include "backends/cpu/target/TargetDescription.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"

#include "backends/cpu/target/CpuDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "backends/cpu/target/CpuAttrs.h.inc"

namespace mica::cpu {

/// On a module: the target CPU, a TargetAttr.
inline constexpr llvm::StringLiteral kTargetAttr = "cpu.target";

/// The target CPU of modules without `cpu.target`.
inline constexpr llvm::StringLiteral kDefaultTarget = "x86-64-v4";

/// The target CPU of the module that contains `op`, or of `op` itself if it is a module.
TargetDescription targetOf(mlir::Operation *op);

/// Sets or replaces the target CPU of `module`.
void setTarget(mlir::ModuleOp module, const TargetDescription &target);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_TARGET_CPUDIALECT_H
