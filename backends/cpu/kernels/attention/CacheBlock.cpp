//===- CacheBlock.cpp - addresses of cache blocks -------------------------===//

#include "backends/cpu/kernels/attention/CacheBlock.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

Value mica::cpu::indexOfBlock(KernelBuilder &b, Value cache, KvCacheType type, Value number) {
  // [layers, sequences, heads, blocks, elements of a block]
  constexpr int64_t axisOfBlocks = 3;
  if (type.getWindow() == 0)
    return number;
  return arith::RemUIOp::create(b, number, memref::DimOp::create(b, cache, axisOfBlocks));
}
