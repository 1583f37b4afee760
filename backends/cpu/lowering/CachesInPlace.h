//===- CachesInPlace.h - no cache is ever copied ----------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_LOWERING_CACHESINPLACE_H
#define MICA_BACKENDS_CPU_LOWERING_CACHESINPLACE_H

#include "backends/cpu/lowering/Passes.h"

namespace mica::cpu {

/// The buffers among the arguments of an entry that are caches by their roles, in order.
mlir::SmallVector<mlir::BlockArgument> cachesOf(mlir::func::FuncOp entry);

/// Fails, naming the append after it, where a bufferized module copies a cache, or has a buffer of
/// a cache's type besides the caches that its entries receive.
mlir::LogicalResult verifyCachesInPlace(mlir::ModuleOp module);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_CACHESINPLACE_H
