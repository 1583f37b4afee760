//===- CacheIdentity.cpp - caches come back in their places ---------------------===//
//
// A program keeps its caches where they are and gets nothing back for them. That is what the IR
// says only if an entry returns each cache, appended to, in the place in which it received it.
//
//===----------------------------------------------------------------------===//

#include "passes/Verify/Checks.h"

using namespace mlir;
using namespace mica;

namespace {
/// Follows caches back to where they came from. Calls have an end: see verifyCallsEnd.
class CacheOrigins {
public:
  /// The argument of a function or of a loop's turn that `cache` was before all appends, or
  /// nothing.
  BlockArgument originOf(Value cache) {
    while (cache && !isa<BlockArgument>(cache))
      cache = followBack(cast<OpResult>(cache));
    return dyn_cast_or_null<BlockArgument>(cache);
  }

private:
  /// The same cache one step earlier, or nothing.
  Value followBack(OpResult cache) {
    Operation *op = cache.getOwner();
    if (auto append = dyn_cast<KvAppendOp>(op))
      return append.getCache();
    if (auto append = dyn_cast<QkvAppendOp>(op))
      return cache == append.getKNext() ? append.getKCache() : append.getVCache();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return followLoop(loop, cache.getResultNumber());
    if (auto call = dyn_cast<func::CallOp>(op))
      return followCall(call, cache.getResultNumber());
    return {};
  }

  /// A loop must hand the cache of a turn to the same place of the next turn.
  Value followLoop(scf::ForOp loop, unsigned index) {
    BlockArgument carried = loop.getRegionIterArg(index);
    return originOf(loop.getYieldedValues()[index]) == carried ? loop.getInitArgs()[index]
                                                               : Value();
  }

  /// The operand that a call hands back as result `index`.
  Value followCall(func::CallOp call, unsigned index) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    auto [entry, isNew] = returned.try_emplace({callee, index});
    if (isNew && callee.getBody().hasOneBlock()) {
      Operation *ret = callee.getBody().front().getTerminator();
      BlockArgument origin = originOf(ret->getOperand(index));
      // Following the callee may have moved the map's entries.
      returned[{callee, index}] = origin;
      return origin ? call.getOperand(origin.getArgNumber()) : Value();
    }
    return entry->second ? call.getOperand(entry->second.getArgNumber()) : Value();
  }

  DenseMap<std::pair<Operation *, unsigned>, BlockArgument> returned;
};
} // namespace

/// Results and caches have the same types in the same order: see verifyEntries.
static LogicalResult verifyEntry(func::FuncOp entry, CacheOrigins &origins) {
  SmallVector<BlockArgument> caches =
      llvm::filter_to_vector(entry.getArguments(), [](BlockArgument argument) {
        return isa<KvCacheType>(argument.getType());
      });
  WalkResult result = entry.walk([&](func::ReturnOp op) -> WalkResult {
    for (auto [index, cache] : llvm::enumerate(caches))
      if (origins.originOf(op.getOperand(index + 1)) != cache)
        return op.emitOpError("returns as cache ")
               << index << " another one than it received there: return every cache, appended to, "
               << "in its own place";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mica::verifyCachesComeBack(ModuleOp module) {
  CacheOrigins origins;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && failed(verifyEntry(function, origins)))
      return failure();
  return success();
}
