//===- Calls.h - functions are not recursive --------------------*- C++ -*-===//
#ifndef MICA_PASSES_VERIFY_CALLS_H
#define MICA_PASSES_VERIFY_CALLS_H

#include "mlir/IR/BuiltinOps.h"

namespace mica {

/// No function is recursive, directly or indirectly: a step of the model terminates, and memory can
/// be planned for it.
llvm::LogicalResult verifyNoRecursion(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_PASSES_VERIFY_CALLS_H
