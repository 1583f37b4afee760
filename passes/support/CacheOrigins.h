//===- CacheOrigins.h - the arguments that caches come from -----*- C++ -*-===//

#ifndef MICA_PASSES_SUPPORT_CACHEORIGINS_H
#define MICA_PASSES_SUPPORT_CACHEORIGINS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mica {

/// Traces caches back to their origin. Terminates because calls are not recursive (see
/// verifyNoRecursion).
class CacheOrigins {
public:
  /// The function argument that `cache` was before all appends, or null.
  mlir::BlockArgument argumentOf(mlir::Value cache);
  /// The function argument or loop iteration argument that `cache` was before all appends, or null.
  mlir::BlockArgument originOf(mlir::Value cache);

private:
  mlir::Value followBack(mlir::OpResult cache);
  mlir::Value followLoop(mlir::scf::ForOp loop, unsigned index);
  mlir::Value followCall(mlir::func::CallOp call, unsigned index);

  llvm::DenseMap<mlir::Value, mlir::BlockArgument> origins;
  llvm::DenseMap<std::pair<mlir::Operation *, unsigned>, mlir::BlockArgument> returned;
};

} // namespace mica

#endif // MICA_PASSES_SUPPORT_CACHEORIGINS_H
