//===- Interpreter.cpp - functions, blocks and the table of ops -----------===//

#include "ir/Interpreter/Interpreter.h"
#include "ir/Interpreter/OpTable.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mica::interp {

/// Deeper calls are a recursion, which no model has.
static constexpr int kMaxDepth = 64;

llvm::Error opError(Operation *op, const Twine &message) {
  std::string text;
  llvm::raw_string_ostream(text) << "'" << op->getName() << "' " << message << " (at "
                                 << op->getLoc() << ")";
  return llvm::createStringError(text);
}

llvm::Error checkSameRows(Operation *op, const Scope &scope, ArrayRef<mlir::Value> tensors) {
  int64_t rows = scope.tensor(tensors.front()).shape[0];
  for (mlir::Value value : tensors.drop_front())
    if (int64_t other = scope.tensor(value).shape[0]; other != rows)
      return opError(op, "has operands of " + Twine(rows) + " and of " + Twine(other) + " rows");
  return llvm::Error::success();
}

llvm::Error checkIndex(Operation *op, StringRef what, int64_t index, int64_t size) {
  if (index >= 0 && index < size)
    return llvm::Error::success();
  return opError(op, what + " " + Twine(index) + " is outside of [0, " + Twine(size) + ")");
}

SmallVector<Value> Scope::get(ValueRange range) const {
  return llvm::map_to_vector(range, [&](mlir::Value value) { return get(value); });
}

llvm::Error Scope::bind(mlir::Value name, Value value) {
  if (llvm::Error error = value.checkFits(name.getType()))
    return error;
  values[name] = std::move(value);
  return llvm::Error::success();
}

llvm::Error Scope::bind(ValueRange names, ArrayRef<Value> bound) {
  if (names.size() != bound.size())
    return llvm::createStringError(Twine(bound.size()) + " values for " + Twine(names.size()) +
                                   " names");
  for (auto [name, value] : llvm::zip_equal(names, bound))
    if (llvm::Error error = bind(name, value))
      return error;
  return llvm::Error::success();
}

llvm::Error Scope::runOp(Operation *op) {
  const OpFunction *function = OpTable::get().lookup(op);
  if (!function)
    return opError(op, "is unknown to the interpreter, which runs the mica dialect");
  // Extents that are not known come from values that are there.
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      if (llvm::Error error = checkSize(llvm::map_to_vector(tensor.getShape(), [](int64_t extent) {
            return ShapedType::isDynamic(extent) ? 1 : extent;
          })))
        return opError(op, llvm::toString(std::move(error)));
  llvm::Expected<SmallVector<Value>> results = (*function)(op, *this);
  if (!results)
    return results.takeError();
  if (const TraceHook &trace = interpreter.getTrace())
    trace(op, get(op->getOperands()), *results);
  if (llvm::Error error = bind(op->getResults(), *results))
    return opError(op, llvm::toString(std::move(error)));
  return llvm::Error::success();
}

llvm::Expected<SmallVector<Value>> Scope::runBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    if (llvm::Error error = runOp(&op))
      return error;
  return get(block.getTerminator()->getOperands());
}

Interpreter::Interpreter(ModuleOp module, WeightProvider weights, TraceHook trace)
    : module(module), weights(std::move(weights)), trace(std::move(trace)),
      balancing(findEqualization(module)) {}

llvm::Expected<SmallVector<Value>> Interpreter::run(func::FuncOp function, ArrayRef<Value> args) {
  SmallVector<Value> own = llvm::map_to_vector(
      args, [](const Value &arg) { return arg.getCache() ? arg.clone() : arg; });
  return call(function, own);
}

llvm::Expected<SmallVector<Value>> Interpreter::call(func::FuncOp function, ArrayRef<Value> args) {
  if (function.isExternal())
    return opError(function, "has no body");
  if (!function.getBody().hasOneBlock())
    return opError(function,
                   "has several blocks; the interpreter runs structured control flow only");
  if (depth == kMaxDepth)
    return opError(function, "is called recursively");
  Scope scope(*this);
  if (llvm::Error error = scope.bind(function.getArguments(), args))
    return opError(function,
                   "@" + function.getSymName() + " arguments: " + llvm::toString(std::move(error)));
  ++depth;
  llvm::Expected<SmallVector<Value>> results = scope.runBlock(function.getBody().front());
  --depth;
  return results;
}

llvm::Expected<SmallVector<Value>> interpret(func::FuncOp function, ArrayRef<Value> args,
                                             WeightProvider weights, TraceHook trace) {
  auto module = function->getParentOfType<ModuleOp>();
  return Interpreter(module, std::move(weights), std::move(trace)).run(function, args);
}

const OpFunction *OpTable::lookup(Operation *op) const {
  auto it = functions.find(op->getName().getStringRef());
  return it == functions.end() ? nullptr : &it->second;
}

SmallVector<StringRef> OpTable::names() const { return llvm::to_vector(functions.keys()); }

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
    addStateOps(result);
    addWeightOps(result);
    return result;
  }();
  return table;
}

} // namespace mica::interp
