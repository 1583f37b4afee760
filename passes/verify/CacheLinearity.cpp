//===- CacheLinearity.cpp - a cache is consumed once ----------------------===//
//
// An append happens in place only when nothing needs the old cache. Inside a block the order
// of ops is the order of execution, so the rule is: after the op that consumes a cache there is no
// further use of it.
//
//===----------------------------------------------------------------------===//

#include "ir/Mica/Diagnostics.h"
#include "passes/verify/Checks.h"

#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mica;

/// Whether the owner of `use` consumes the cache: appends, calls and terminators. Only reads do
/// not.
static bool isConsumed(OpOperand &use) { return !isa<ReadsState>(use.getOwner()); }

static InFlightDiagnostic reportUse(Operation *user, Operation *consumer, StringRef how) {
  InFlightDiagnostic diagnostic = user->emitError();
  diagnostic << "the cache is used after " << consumer->getName() << " ("
             << describePlace(consumer->getLoc()) << ") consumed it" << how;
  diagnostic.attachNote(consumer->getLoc()) << "the cache is consumed here";
  return diagnostic;
}

/// The op of the block where `value` is defined that `user` is or is in.
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
