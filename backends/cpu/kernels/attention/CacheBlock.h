//===- CacheBlock.h - addresses of cache blocks -----------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_CACHEBLOCK_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_CACHEBLOCK_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// The index of block `number`, whose first position is number * block, among the blocks of a head
/// that are allocated in `cache`. The blocks of a cache with a window are a ring, whose length the
/// runtime chooses. Only this function depends on that.
mlir::Value indexOfBlock(KernelBuilder &b, mlir::Value cache, KvCacheType type, mlir::Value number);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_CACHEBLOCK_H
