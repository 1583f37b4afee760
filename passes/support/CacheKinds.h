//===- CacheKinds.h - which caches hold keys and which values ---*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_CACHEKINDS_H
#define MICA_PASSES_SUPPORT_CACHEKINDS_H

#include "ir/Mica/Mica.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mica {

/// The cache that `keys` is read from, or null. `keys` is the key or value operand of an attention.
mlir::Value findCache(mlir::Value keys);

/// Whether each cache value of a module holds keys or values: determined by the attention that
/// reads it or the append that writes it, and propagated along appends, calls and returns.
class CacheKinds {
public:
  explicit CacheKinds(mlir::ModuleOp module);

  /// Emits an error and fails if a cache is used for both keys and values.
  llvm::LogicalResult infer(mlir::ModuleOp module);

  /// Keys if the cache is never used.
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
