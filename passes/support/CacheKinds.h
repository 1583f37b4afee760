//===- CacheKinds.h - which caches hold keys, which values ------*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_CACHEKINDS_H
#define MICA_PASSES_SUPPORT_CACHEKINDS_H

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mica {

/// The cache that `keys`, or values, an operand of attention, is read from, or null.
mlir::Value findCache(mlir::Value keys);

/// What each cache value of a module holds: found where attention reads it or an append says so,
/// and spread along appends, calls and returns to all values that are the same cache.
class CacheKinds {
public:
  explicit CacheKinds(mlir::ModuleOp module);

  /// Fails when a cache is used for keys and for values.
  llvm::LogicalResult infer(mlir::ModuleOp module);

  /// A cache that is not read counts as keys.
  KvKind get(mlir::Value cache) const { return kinds.lookup_or(cache, KvKind::Keys); }

private:
  llvm::LogicalResult spread(mlir::Value cache, KvKind kind, mlir::Operation *user);
  void appendSame(mlir::Value cache, llvm::SmallVectorImpl<mlir::Value> &open);

  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::func::CallOp>> calls;
  llvm::DenseMap<mlir::Value, KvKind> kinds;
};

} // namespace mica

#endif // MICA_PASSES_SUPPORT_CACHEKINDS_H
