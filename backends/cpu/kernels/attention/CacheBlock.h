//===- CacheBlock.h - where positions are in a cache ------------*- C++ -*-===//

#ifndef MICA_BACKENDS_CPU_KERNELS_ATTENTION_CACHEBLOCK_H
#define MICA_BACKENDS_CPU_KERNELS_ATTENTION_CACHEBLOCK_H

#include "backends/cpu/kernels/KernelBuilder.h"
#include "ir/Mica/Mica.h"

namespace mica::cpu {

/// The index, among the blocks of a head that `cache` has memory for, of the block of positions
/// `number`: number * block is its first position. The blocks of a cache with a window are a ring,
/// whose length the runtime chooses. Only this function depends on that.
mlir::Value indexOfBlock(KernelBuilder &b, mlir::Value cache, KvCacheType type, mlir::Value number);

} // namespace mica::cpu

#endif // MICA_BACKENDS_CPU_KERNELS_ATTENTION_CACHEBLOCK_H
