//===- CacheOrigins.cpp - the arguments that caches come from -------------===//

#include "passes/support/CacheOrigins.h"
#include "ir/Mica/Mica.h"

using namespace mlir;
using namespace mica;

BlockArgument CacheOrigins::argumentOf(Value cache) {
  BlockArgument origin = originOf(cache);
  while (origin) {
    auto loop = dyn_cast<scf::ForOp>(origin.getOwner()->getParentOp());
    if (!loop)
      break;
    origin = originOf(loop.getTiedLoopInit(origin)->get());
  }
  return origin;
}

BlockArgument CacheOrigins::originOf(Value cache) {
  SmallVector<Value> passed;
  while (cache && !isa<BlockArgument>(cache)) {
    auto known = origins.find(cache);
    if (known != origins.end()) {
      cache = known->second;
      break;
    }
    passed.push_back(cache);
    cache = followBack(cast<OpResult>(cache));
  }
  auto origin = dyn_cast_or_null<BlockArgument>(cache);
  // In a deep model, a cache passes through many calls: cache the result for each of them.
  for (Value value : passed)
    origins[value] = origin;
  return origin;
}

/// The same cache before the op that produces it, or null.
Value CacheOrigins::followBack(OpResult cache) {
  Operation *op = cache.getOwner();
  if (auto update = dyn_cast<UpdatesState>(op))
    return update.getStateBefore(cache);
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return followLoop(loop, cache.getResultNumber());
  if (auto call = dyn_cast<func::CallOp>(op))
    return followCall(call, cache.getResultNumber());
  return {};
}

/// A loop must pass the cache to the same iteration argument.
Value CacheOrigins::followLoop(scf::ForOp loop, unsigned index) {
  BlockArgument carried = loop.getRegionIterArg(index);
  return originOf(loop.getYieldedValues()[index]) == carried ? loop.getInitArgs()[index] : Value();
}

/// The operand that a call returns as result `index`, or null.
Value CacheOrigins::followCall(func::CallOp call, unsigned index) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  auto [entry, isNew] = returned.try_emplace({callee, index});
  if (isNew && callee.getBody().hasOneBlock()) {
    Operation *ret = callee.getBody().front().getTerminator();
    BlockArgument origin = originOf(ret->getOperand(index));
    // originOf may have inserted into the map, which invalidates `entry`.
    returned[{callee, index}] = origin;
    return origin ? call.getOperand(origin.getArgNumber()) : Value();
  }
  return entry->second ? call.getOperand(entry->second.getArgNumber()) : Value();
}
