//===- Interpreter.cpp - functions, blocks and the op table ---------------===//

#include "ir/Interpreter/Interpreter.h"
#include "ir/Interpreter/OpTable.h"

using namespace mlir;

namespace mica::interp {

/// The maximum call depth; models are not recursive.
static constexpr int kMaxDepth = 64;

llvm::Error Interpreter::runOp(Operation *op, Frame &frame) {
  const OpFunction *function = OpTable::get().lookup(op);
  if (!function)
    return opError(op, "is unknown to the interpreter, which runs the mica dialect");
  // Check the static extents; dynamic ones are those of existing values.
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (llvm::Error error = checkSize(llvm::map_to_vector(tensor.getShape(), [](int64_t extent) {
            return ShapedType::isDynamic(extent) ? 1 : extent;
          })))
        return opError(op, llvm::toString(std::move(error)));
  llvm::Expected<RankValues> results = (*function)(op, frame);
  if (!results)
    return results.takeError();
  if (trace)
    for (auto [scope, own] : llvm::zip_equal(frame.ranks(), *results))
      trace(op, scope.get(op->getOperands()), own);
  if (llvm::Error error = frame.bind(op->getResults(), *results))
    return opError(op, llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Expected<RankValues> Interpreter::runBlock(Block &block, Frame &frame) {
  for (Operation &op : block.without_terminator())
    if (llvm::Error error = runOp(&op, frame))
      return error;
  return frame.get(block.getTerminator()->getOperands());
}

Interpreter::Interpreter(ModuleOp module, WeightProvider weights, TraceHook trace)
    : weights(module, std::move(weights)), trace(std::move(trace)) {}

/// Fails unless all ranks return the same bits, but for caches, which ranks keep for themselves.
static llvm::Error checkReturned(func::FuncOp function, const RankValues &results) {
  for (auto [rank, own] : llvm::enumerate(results))
    for (auto [number, value] : llvm::enumerate(own)) {
      const Tensor *tensor = value.getTensor(), *first = results.front()[number].getTensor();
      if (tensor && !haveSameBits(*tensor, *first))
        return opError(function, "@" + function.getSymName() + " returns another result " +
                                     Twine(number) + " on rank " + Twine(rank) + " than on rank 0");
    }
  return llvm::Error::success();
}

llvm::Expected<SmallVector<Value>> Interpreter::run(func::FuncOp function, ArrayRef<Value> args) {
  RankValues own(getRanks());
  for (SmallVector<Value> &values : own)
    values = llvm::map_to_vector(
        args, [](const Value &arg) { return arg.getCache() ? arg.clone() : arg; });
  llvm::Expected<RankValues> results = call(function, own);
  if (!results)
    return results.takeError();
  if (llvm::Error error = checkReturned(function, *results))
    return std::move(error);
  return std::move(results->front());
}

llvm::Expected<RankValues> Interpreter::call(func::FuncOp function, const RankValues &args) {
  if (function.isExternal())
    return opError(function, "has no body");
  if (!function.getBody().hasOneBlock())
    return opError(function,
                   "has several blocks; the interpreter runs structured control flow only");
  if (depth == kMaxDepth)
    return opError(function, "is called recursively");
  Frame frame(*this, getRanks());
  if (llvm::Error error = frame.bind(function.getArguments(), args))
    return opError(function,
                   "@" + function.getSymName() + " arguments: " + llvm::toString(std::move(error)));
  ++depth;
  llvm::Expected<RankValues> results = runBlock(function.getBody().front(), frame);
  --depth;
  return results;
}

llvm::Expected<SmallVector<Value>> interpret(func::FuncOp function, ArrayRef<Value> args,
                                             WeightProvider weights, TraceHook trace) {
  auto module = function->getParentOfType<ModuleOp>();
  return Interpreter(module, std::move(weights), std::move(trace)).run(function, args);
}

const OpTable &OpTable::get() {
  static const OpTable table = [] {
    OpTable result;
    addAttentionOps(result);
    addControlOps(result);
    addElementwiseOps(result);
    addFusedOps(result);
    addLinearOps(result);
    addMoeOps(result);
    addNormOps(result);
    addShardOps(result);
    addStateOps(result);
    addWeightOps(result);
    return result;
  }();
  return table;
}

} // namespace mica::interp
