//===- CacheIdentity.h - entries return their caches ------------*- C++ -*-===//
#ifndef MICA_PASSES_VERIFY_CACHEIDENTITY_H
#define MICA_PASSES_VERIFY_CACHEIDENTITY_H

#include "mlir/IR/BuiltinOps.h"

namespace mica {

/// Entry functions return each cache that they receive, in the same position.
llvm::LogicalResult verifyCachesReturned(mlir::ModuleOp module);

/// A step appends to each layer of a cache at most once.
llvm::LogicalResult verifySingleAppend(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_PASSES_VERIFY_CACHEIDENTITY_H
