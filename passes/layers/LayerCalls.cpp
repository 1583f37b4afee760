//===- LayerCalls.cpp - calls of layers, to be rolled into a loop ---------===//

#include "passes/layers/LayerCalls.h"

#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mica;

std::optional<int64_t> mica::getConstant(Value value) {
  APInt number;
  return value.getType().isIndex() && matchPattern(value, m_ConstantInt(&number))
             ? std::optional<int64_t>(number.getSExtValue())
             : std::nullopt;
}

LogicalResult mica::moveBefore(IRRewriter &rewriter, Operation *place, ArrayRef<Value> values) {
  SmallVector<Operation *> late;
  bool there = true;
  for (Value value : values) {
    Operation *maker = value.getDefiningOp();
    if (!maker || maker->getBlock() != place->getBlock() || maker->isBeforeInBlock(place))
      continue;
    there &= maker->getNumOperands() == 0 && isMemoryEffectFree(maker);
    late.push_back(maker);
  }
  if (!there)
    return rewriter.notifyMatchFailure(place, "an operand is computed between the calls");
  for (Operation *maker : late)
    rewriter.moveOpBefore(maker, place);
  return success();
}

Value mica::selectWeight(IRRewriter &rewriter, ArrayRef<Value> weights, Value entry) {
  SmallVector<Attribute> names = llvm::map_to_vector(weights, [](Value weight) -> Attribute {
    return weight.getDefiningOp<GetWeightOp>().getWeightAttr();
  });
  Value first = weights.front();
  if (llvm::all_equal(names))
    return first;
  Location loc = rewriter.getFusedLoc(
      llvm::map_to_vector(weights, [](Value weight) { return weight.getLoc(); }));
  return SelectWeightOp::create(rewriter, loc, first.getType(), rewriter.getArrayAttr(names),
                                entry);
}

void mica::eraseCalls(IRRewriter &rewriter, ArrayRef<func::CallOp> calls) {
  llvm::SetVector<Operation *> producers;
  for (func::CallOp call : llvm::reverse(calls)) {
    for (Value operand : call.getOperands())
      if (operand.getDefiningOp() && !isa<func::CallOp>(operand.getDefiningOp()))
        producers.insert(operand.getDefiningOp());
    rewriter.eraseOp(call);
  }
  for (Operation *producer : producers)
    if (isOpTriviallyDead(producer))
      rewriter.eraseOp(producer);
}
