//===- CacheLinearity.h - caches are consumed once --------------*- C++ -*-===//
#ifndef MICA_PASSES_VERIFY_CACHELINEARITY_H
#define MICA_PASSES_VERIFY_CACHELINEARITY_H

#include "mlir/IR/BuiltinOps.h"

namespace mica {

/// Every cache value is consumed by at most one op, and not used afterwards; errors name that op.
llvm::LogicalResult verifyCachesAreLinear(mlir::ModuleOp module);

} // namespace mica

#endif // MICA_PASSES_VERIFY_CACHELINEARITY_H
