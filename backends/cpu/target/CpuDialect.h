//===- CpuDialect.h - the processor that a module is compiled for -*- C++ -*-===//
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

/// On a module: the processor that it is compiled for, a TargetAttr.
inline constexpr llvm::StringLiteral kTargetAttr = "cpu.target";

/// The processor compiled for where a module names none.
inline constexpr llvm::StringLiteral kDefaultTarget = "x86-64-v4";

/// The processor that the module of `op` (or the module `op`) is compiled for.
TargetDescription targetOf(mlir::Operation *op);

/// Names the processor that `module` is compiled for, in place of any before.
void setTarget(mlir::ModuleOp module, const TargetDescription &target);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_TARGET_CPUDIALECT_H
