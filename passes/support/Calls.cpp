//===- Calls.cpp - functions changed together with their calls ------------===//

#include "passes/support/Calls.h"

using namespace mlir;
using namespace mica;

std::optional<SmallVector<func::CallOp>> mica::findCalls(func::FuncOp function) {
  if (!function.isPrivate() || function.isExternal())
    return std::nullopt;
  auto uses = SymbolTable::getSymbolUses(function, function->getParentOfType<ModuleOp>());
  if (!uses)
    return std::nullopt;
  SmallVector<func::CallOp> calls;
  for (SymbolTable::SymbolUse use : *uses) {
    auto call = dyn_cast<func::CallOp>(use.getUser());
    if (!call)
      return std::nullopt;
    calls.push_back(call);
  }
  return calls;
}

BlockArgument mica::insertArgument(RewriterBase &rewriter, func::FuncOp function, unsigned index,
                                   Type type, Location loc, ArrayRef<func::CallOp> calls,
                                   ValueRange values) {
  rewriter.modifyOpInPlace(function, [&] {
    // Fails only for function types other than FunctionType.
    (void)function.insertArgument(index, type, /*argAttrs=*/{}, loc);
  });
  for (auto [call, value] : llvm::zip_equal(calls, values))
    rewriter.modifyOpInPlace(
        call, [call = call, value = value, index] { call->insertOperands(index, value); });
  return function.getArgument(index);
}

void mica::eraseArguments(RewriterBase &rewriter, func::FuncOp function,
                          const llvm::BitVector &indices, ArrayRef<func::CallOp> calls) {
  for (func::CallOp call : calls) {
    SmallVector<Operation *> producers;
    for (unsigned index : indices.set_bits())
      if (Operation *producer = call.getOperand(index).getDefiningOp())
        producers.push_back(producer);
    rewriter.modifyOpInPlace(call, [&] { call->eraseOperands(indices); });
    for (Operation *producer : llvm::SetVector<Operation *>(producers.begin(), producers.end()))
      if (isOpTriviallyDead(producer))
        rewriter.eraseOp(producer);
  }
  rewriter.modifyOpInPlace(function, [&] { (void)function.eraseArguments(indices); });
}

void mica::updateFunctionType(func::FuncOp function) {
  if (function.isExternal())
    return;
  auto results = function.getFunctionType().getResults();
  SmallVector<Type> resultTypes(results);
  function.walk([&](func::ReturnOp op) {
    resultTypes.assign(op.getOperandTypes().begin(), op.getOperandTypes().end());
  });
  function.setFunctionType(
      FunctionType::get(function.getContext(), function.front().getArgumentTypes(), resultTypes));
}

void mica::convertStates(ModuleOp module, llvm::function_ref<Type(SequenceState, Value)> convert) {
  auto convertValue = [&](Value value) {
    if (auto state = dyn_cast<SequenceState>(value.getType()))
      value.setType(convert(state, value));
  };
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        llvm::for_each(block.getArguments(), convertValue);
    llvm::for_each(op->getResults(), convertValue);
    // Views, and ops that only rearrange them, have the element type of the state.
    Type element;
    if (auto read = dyn_cast<ReadsState>(op))
      element = cast<SequenceState>(read.getState().getType()).getElementType();
    else if (isa_and_nonnull<MicaDialect>(op->getDialect()) &&
             op->hasTrait<OpTrait::SameOperandsAndResultElementType>())
      element = cast<RankedTensorType>(op->getOperand(0).getType()).getElementType();
    if (element)
      for (Value result : op->getResults())
        result.setType(cast<RankedTensorType>(result.getType()).clone(element));
  });
  module.walk(updateFunctionType);
}
