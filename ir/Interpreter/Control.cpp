//===- Control.cpp - calls, loops, constants and extents ------------------===//
//
// Calls and loops run functions and blocks of ops: these functions call the interpreter, which
// calls them.
//
//===----------------------------------------------------------------------===//

#include "ir/Interpreter/Interpreter.h"
#include "ir/Interpreter/OpTable.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace mica::interp {

static llvm::Expected<RankValues> evalCall(func::CallOp op, Frame &frame) {
  auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  return frame.interpreter.call(callee, frame.get(op.getOperands()));
}

static llvm::Expected<Value> evalConstant(arith::ConstantOp op, Scope &) {
  if (auto integer = dyn_cast<IntegerAttr>(op.getValue()))
    return Value(integer.getValue().getSExtValue());
  if (auto elements = dyn_cast<ElementsAttr>(op.getValue())) {
    llvm::Expected<Tensor> tensor = tensorFrom(elements);
    if (!tensor)
      return opError(op, llvm::toString(tensor.takeError()));
    return Value(std::move(*tensor));
  }
  return opError(op, "is neither an integer nor a dense tensor");
}

template <typename OpT, typename Formula>
static llvm::Expected<Value> integers(OpT op, Scope &scope, Formula formula) {
  if (!op.getType().isIntOrIndex())
    return opError(op, "computes with scalars only in the interpreter");
  return Value(int64_t(formula(scope.scalar(op.getLhs()), scope.scalar(op.getRhs()))));
}

static llvm::Expected<Value> evalAddI(arith::AddIOp op, Scope &scope) {
  return integers(op, scope, std::plus<int64_t>());
}

static llvm::Expected<Value> evalMulI(arith::MulIOp op, Scope &scope) {
  return integers(op, scope, std::multiplies<int64_t>());
}

static llvm::Expected<RankValues> evalIf(scf::IfOp op, Frame &frame) {
  Region &taken = frame.scalar(op.getCondition()) ? op.getThenRegion() : op.getElseRegion();
  if (taken.empty())
    return RankValues(frame.ranks().size());
  return frame.interpreter.runBlock(taken.front(), frame);
}

static llvm::Expected<RankValues> evalFor(scf::ForOp op, Frame &frame) {
  int64_t step = frame.scalar(op.getStep());
  if (step <= 0)
    return opError(op, "has step " + Twine(step) + ", which must be positive");
  RankValues carried = frame.get(op.getInitArgs());
  for (int64_t i = frame.scalar(op.getLowerBound()); i < frame.scalar(op.getUpperBound());
       i += step) {
    for (SmallVector<Value> &args : carried)
      args.insert(args.begin(), Value(i));
    if (llvm::Error error = frame.bind(op.getBody()->getArguments(), carried))
      return opError(op, llvm::toString(std::move(error)));
    llvm::Expected<RankValues> next = frame.interpreter.runBlock(*op.getBody(), frame);
    if (!next)
      return next.takeError();
    carried = std::move(*next);
  }
  return carried;
}

static llvm::Expected<Value> evalDim(tensor::DimOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getSource());
  int64_t axis = scope.scalar(op.getIndex());
  if (llvm::Error error = checkIndex(op, "axis", axis, x.shape.size()))
    return error;
  return Value(x.shape[axis]);
}

static llvm::Expected<Tensor> evalEmpty(tensor::EmptyOp op, Scope &scope) {
  SmallVector<int64_t> extents = llvm::map_to_vector(
      op.getDynamicSizes(), [&](mlir::Value size) { return scope.scalar(size); });
  for (int64_t extent : extents)
    if (extent < 0)
      return opError(op, "has a negative extent " + Twine(extent));
  return Tensor::zerosOf(op.getType(), extents);
}

static llvm::Expected<Value> evalTensorCast(tensor::CastOp op, Scope &scope) {
  return scope.get(op.getSource());
}

void addControlOps(OpTable &table) {
  table.add(evalCall);
  table.add(evalConstant);
  table.add(evalAddI);
  table.add(evalMulI);
  table.add(evalIf);
  table.add(evalFor);
  table.add(evalDim);
  table.add(evalEmpty);
  table.add(evalTensorCast);
}

} // namespace mica::interp
