//===- CacheKinds.cpp - which caches hold keys and which values -----------===//

#include "passes/support/CacheKinds.h"

using namespace mlir;
using namespace mica;

CacheKinds::CacheKinds(ModuleOp module) : symbols(module) {
  module.walk([&](func::CallOp call) { calls[call.getCalleeAttr().getAttr()].push_back(call); });
}

Value mica::findCache(Value keys) {
  if (auto repeat = keys.getDefiningOp<RepeatKvOp>())
    keys = repeat.getX();
  auto read = keys.getDefiningOp<ReadsState>();
  return read ? read.getState() : Value();
}

LogicalResult CacheKinds::infer(ModuleOp module) {
  WalkResult result = module.walk([&](Operation *op) -> WalkResult {
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      Value keys = findCache(attention.getK()), values = findCache(attention.getV());
      // Values that are part of keys are stored as keys.
      return failure((keys && failed(spread(keys, KvKind::Keys, op))) ||
                     (values && values != keys && failed(spread(values, KvKind::Values, op))));
    }
    if (auto update = dyn_cast<UpdatesState>(op))
      for (const StateUpdate &written : update.getStateUpdates())
        if (written.kind && failed(spread(written.state, *written.kind, op)))
          return failure();
    return success();
  });
  return failure(result.wasInterrupted());
}

LogicalResult CacheKinds::spread(Value cache, KvKind kind, Operation *user) {
  SmallVector<Value> open{cache};
  while (!open.empty()) {
    Value next = open.pop_back_val();
    auto [known, isNew] = kinds.insert({next, kind});
    if (!isNew && known->second != kind)
      return user->emitOpError() << "uses a cache for " << stringifyKvKind(kind)
                                 << " that is used for " << stringifyKvKind(known->second)
                                 << " elsewhere";
    if (isNew)
      appendSame(next, open);
  }
  return success();
}

void CacheKinds::appendSame(Value cache, SmallVectorImpl<Value> &open) {
  auto returned = [&](func::CallOp call, unsigned index) {
    if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
        callee && !callee.isExternal())
      callee.walk([&](func::ReturnOp op) { open.push_back(op.getOperand(index)); });
  };
  if (auto argument = dyn_cast<BlockArgument>(cache)) {
    if (auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp()))
      for (func::CallOp call : calls[function.getSymNameAttr()])
        open.push_back(call.getOperand(argument.getArgNumber()));
  } else if (auto update = cache.getDefiningOp<UpdatesState>()) {
    open.push_back(update.getStateBefore(cache));
  } else if (auto call = cache.getDefiningOp<func::CallOp>()) {
    returned(call, cast<OpResult>(cache).getResultNumber());
  }
  for (OpOperand &use : cache.getUses()) {
    unsigned index = use.getOperandNumber();
    TypeSwitch<Operation *>(use.getOwner())
        .Case([&](UpdatesState update) { open.push_back(update.getStateAfter(cache)); })
        .Case([&](func::CallOp call) {
          if (auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
              callee && !callee.isExternal())
            open.push_back(callee.getArgument(index));
        })
        .Case([&](func::ReturnOp op) {
          for (func::CallOp call : calls[op->getParentOfType<func::FuncOp>().getSymNameAttr()])
            open.push_back(call.getResult(index));
        });
  }
}
