//===- Passes.h - from stage `kernels` to stage `loops` ---------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_LOWERING_PASSES_H
#define MICA_BACKENDS_CPU_LOWERING_PASSES_H

#include "ir/Exec/Exec.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace mica::cpu {

#define GEN_PASS_DECL
#include "backends/cpu/lowering/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "backends/cpu/lowering/Passes.h.inc"

/// The number of arguments that are added to entry functions after the others: weights, scratch
/// memory and logits, in this order.
inline constexpr unsigned kEntryArguments = 3;

/// Attributes of a module at stage `loops`: bytes of scratch memory per row of a call, and
/// independent of the rows.
inline constexpr llvm::StringLiteral kScratchPerRowAttr = "mica.scratch_per_row";
inline constexpr llvm::StringLiteral kScratchPerOutputAttr = "mica.scratch_per_output";
inline constexpr llvm::StringLiteral kScratchFixedAttr = "mica.scratch_fixed";

/// Whether `function` is an entry function: public, with a body.
inline bool isEntry(mlir::func::FuncOp function) {
  return function.isPublic() && !function.isExternal();
}

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_PASSES_H
