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
#include "mlir/Pass/PassManager.h"

namespace mica::cpu {

#define GEN_PASS_DECL
#include "backends/cpu/lowering/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "backends/cpu/lowering/Passes.h.inc"

/// How many arguments entry functions receive after the others: weights, scratch memory and the
/// place for the logits, in this order.
inline constexpr unsigned kEntryArguments = 3;

/// Whether `function` is an entry of the program: public, with a body.
bool isEntry(mlir::func::FuncOp function);

/// Appends the passes from stage `kernels` to stage `loops`, for the target that the module names.
void buildLoopsPipeline(mlir::OpPassManager &pm);

/// Registers the passes, and the pipeline `mica-kernels-to-loops`.
void registerLoweringPasses();

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_PASSES_H
