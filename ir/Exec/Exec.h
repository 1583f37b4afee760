//===- Exec.h - the exec dialect --------------------------------*- C++ -*-===//
//
// Launches of generated kernels, oneDNN matmuls and exchanges between ranks. See ExecOps.td.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_EXEC_EXEC_H
#define MICA_IR_EXEC_EXEC_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/Exec/ExecDialect.h.inc"

namespace mica::exec {
/// Ops that become calls of the runtime.
template <typename Op> class CallsRuntime : public mlir::OpTrait::TraitBase<Op, CallsRuntime> {};
} // namespace mica::exec

#define GET_ATTRDEF_CLASSES
#include "ir/Exec/ExecAttrs.h.inc"

#define GET_OP_CLASSES
#include "ir/Exec/ExecOps.h.inc"

namespace mica::exec {

/// On a function: marks it as a kernel; a KernelAttr.
inline constexpr llvm::StringLiteral kKernelAttr = "exec.kernel";
/// On a kernel: the cost of a launch, a CostAttr; absent if it reads neither weights nor caches.
inline constexpr llvm::StringLiteral kCostAttr = "exec.cost";

/// On a loop: the #llvm.loop_annotation of the LLVM loop that it is lowered to.
inline constexpr llvm::StringLiteral kLoopAnnotationAttr = "llvm.loop_annotation";

/// Attaches the bufferization interfaces of the exec ops; call before running one-shot
/// bufferization.
void registerBufferization(mlir::DialectRegistry &registry);

} // namespace mica::exec

#endif // MICA_IR_EXEC_EXEC_H
