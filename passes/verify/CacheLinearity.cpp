//===- CacheLinearity.cpp - a cache is consumed once ----------------------===//
//
// An append can be performed in place only if nothing uses the old cache afterwards. Within a
// block, ops execute in order, so the rule is that a cache has no use after the op that consumes
// it.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/CacheLinearity.h"
#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/Mica.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mica;

/// Whether the owner of `use` consumes the cache. Appends, calls and terminators do; reads do not.
static bool isConsumed(OpOperand &use) { return !isa<ReadsState>(use.getOwner()); }

static InFlightDiagnostic reportUse(Operation *user, Operation *consumer, StringRef how) {
  InFlightDiagnostic diagnostic = user->emitError();
  diagnostic << "the cache is used after " << consumer->getName() << " ("
             << describeLocation(consumer->getLoc()) << ") consumed it" << how;
  diagnostic.attachNote(consumer->getLoc()) << "the cache is consumed here";
  return diagnostic;
}

/// The op in the block of `value` that is `user` or contains it.
static Operation *findAncestor(Value value, Operation *user) {
  return value.getParentBlock()->findAncestorOpInBlock(*user);
}

static LogicalResult verifyCache(Value cache) {
  OpOperand *consumer = nullptr;
  for (OpOperand &use : cache.getUses()) {
    Operation *ancestor = findAncestor(cache, use.getOwner());
    if (!isConsumed(use))
      continue;
    if (ancestor != use.getOwner() && isa<LoopLikeOpInterface>(ancestor))
      return reportUse(use.getOwner(), use.getOwner(), " in an earlier iteration of the loop");
    if (!consumer || ancestor->isBeforeInBlock(findAncestor(cache, consumer->getOwner())))
      consumer = &use;
  }
  if (!consumer)
    return success();
  Operation *end = findAncestor(cache, consumer->getOwner());
  for (OpOperand &use : cache.getUses()) {
    Operation *ancestor = findAncestor(cache, use.getOwner());
    if (&use != consumer && (ancestor == end || end->isBeforeInBlock(ancestor)))
      return reportUse(use.getOwner(), consumer->getOwner(), "");
  }
  return success();
}

LogicalResult mica::verifyCachesAreLinear(ModuleOp module) {
  auto verifyValues = [](ValueRange values) -> WalkResult {
    for (Value value : values)
      if (isa<SequenceState>(value.getType()) && failed(verifyCache(value)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  };
  WalkResult result = module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        if (verifyValues(block.getArguments()).wasInterrupted())
          return WalkResult::interrupt();
    return verifyValues(op->getResults());
  });
  return failure(result.wasInterrupted());
}
