//===- Windows.h - windows of caches ----------------------------*- C++ -*-===//
#ifndef MICA_PASSES_VERIFY_WINDOWS_H
#define MICA_PASSES_VERIFY_WINDOWS_H

#include "mlir/IR/BuiltinOps.h"

namespace mica {

/// No attention looks further back than the windows of its caches.
llvm::LogicalResult verifyWindows(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_PASSES_VERIFY_WINDOWS_H
