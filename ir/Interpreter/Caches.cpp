//===- Caches.cpp - reading and appending to caches -----------------------===//

#include "ir/Interpreter/Caches.h"

using namespace mlir;

namespace mica::interp {

static llvm::Error checkUsable(Operation *op, const CacheVersion &version) {
  if (*version.consumed)
    return opError(op, "uses a cache after an append has consumed it");
  return llvm::Error::success();
}

llvm::Error checkSlots(Operation *op, const CacheVersion &version, const Slots &slots) {
  const Cache &cache = *version.cache;
  if (llvm::Error error = checkUsable(op, version))
    return error;
  if (llvm::Error error = checkIndex(op, "layer", slots.layer, cache.type.getLayers()))
    return error;
  for (int64_t sequence : slots.sequences)
    if (llvm::Error error = checkIndex(op, "sequence", sequence, cache.batch))
      return error;
  for (int64_t position : slots.positions)
    if (llvm::Error error = checkIndex(op, "position", position, cache.positions))
      return error;
  return llvm::Error::success();
}

CacheVersion consume(const CacheVersion &version) {
  *version.consumed = true;
  return {version.cache, std::make_shared<bool>(false)};
}

void write(Cache &cache, const Slots &slots, int64_t t, ArrayRef<double> row) {
  int64_t slot = cache.slot(slots.layer, slots.sequences[t], slots.positions[t]),
          begin = slot * cache.rowSize();
  Type element = cache.type.getElementType();
  cache.isWritten[slot] = true;
  for (auto [i, value] : llvm::enumerate(row))
    cache.data[begin + i] = roundTo(element, value);
  // Quantized caches have a scale per head.
  int64_t headDim = cache.type.getRowShape().back(), end = begin + static_cast<int64_t>(row.size());
  for (int64_t head = begin; head < end; head += headDim)
    roundRow(element, MutableArrayRef(cache.data).slice(head, headDim));
}

} // namespace mica::interp
