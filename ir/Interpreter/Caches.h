//===- Caches.h - reading and appending to caches ---------------*- C++ -*-===//

#ifndef MICA_IR_INTERPRETER_CACHES_H
#define MICA_IR_INTERPRETER_CACHES_H

#include "ir/Interpreter/OpTable.h"

namespace mica::interp {

/// The slots of a cache that the rows of a step belong to.
struct Slots {
  int64_t layer;
  llvm::ArrayRef<int64_t> sequences; ///< [T]
  llvm::ArrayRef<int64_t> positions; ///< [T]
};

/// The slots given by the operands of an op that updates caches.
template <typename Op> Slots slotsOf(Op op, Scope &scope) {
  return {scope.scalar(op.getLayer()), scope.tensor(op.getSequences()).ints,
          scope.tensor(op.getPositions()).ints};
}

/// Returns an error at `op` unless the cache has not been consumed and all slots are within bounds.
llvm::Error checkSlots(mlir::Operation *op, const CacheVersion &version, const Slots &slots);

/// Marks `version` as consumed and returns the next one; checkSlots must have succeeded.
CacheVersion consume(const CacheVersion &version);

/// The slots of a step on one state, and the next version of the state.
struct StateStep {
  Slots slots;
  CacheVersion next;
};

/// Consumes `state` for `op`; fails as checkSlots does.
template <typename Op> llvm::Expected<StateStep> beginStep(Op op, mlir::Value state, Scope &scope) {
  const CacheVersion &version = scope.cache(state);
  Slots slots = slotsOf(op, scope);
  if (llvm::Error error = checkSlots(op, version, slots))
    return std::move(error);
  return StateStep{slots, consume(version)};
}

/// Writes `row`, the whole content of one position, to the slot of row `t`, rounded to the cache's
/// type.
void write(Cache &cache, const Slots &slots, int64_t t, llvm::ArrayRef<double> row);

} // namespace mica::interp

#endif // MICA_IR_INTERPRETER_CACHES_H
