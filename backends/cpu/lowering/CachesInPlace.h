//===- CachesInPlace.h - verify that no cache is copied ---------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_LOWERING_CACHESINPLACE_H
#define MICA_BACKENDS_CPU_LOWERING_CACHESINPLACE_H

#include "backends/cpu/lowering/Passes.h"

namespace mica::cpu {

/// The buffers among the arguments of an entry function whose role is `cache`, in order.
mlir::SmallVector<mlir::BlockArgument> cachesOf(mlir::func::FuncOp entry);

/// Emits an error, with a note at the append that causes it, if a bufferized module copies a cache,
/// or has a buffer of a cache's type other than the caches that its entry functions receive.
mlir::LogicalResult verifyCachesInPlace(mlir::ModuleOp module);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_LOWERING_CACHESINPLACE_H
