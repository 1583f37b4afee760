//===- Elementwise.cpp - arithmetic, activations, rounding, reshapes ------===//

#include "ir/Interpreter/Formulas.h"
#include "ir/Interpreter/OpTable.h"
#include "ir/Mica/Activations.h"

#include <cmath>

using namespace mlir;

namespace mica::interp {

/// y[i] = formula(x[i]).
template <typename Formula> static Tensor mapped(const Tensor &x, Formula formula) {
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  for (int64_t i = 0; i < y.getNumElements(); ++i)
    y.set(i, formula(x.floats[i]));
  return y;
}

/// y[i] = formula(lhs[i], rhs[i]).
template <typename OpT, typename Formula>
static llvm::Expected<Tensor> zipped(OpT op, Scope &scope, Formula formula) {
  if (llvm::Error error = checkSameRows(op, scope, {op.getLhs(), op.getRhs()}))
    return error;
  const Tensor &lhs = scope.tensor(op.getLhs()), &rhs = scope.tensor(op.getRhs());
  Tensor y = Tensor::zeros(lhs.elementType, lhs.shape);
  for (int64_t i = 0; i < y.getNumElements(); ++i)
    y.set(i, formula(double(lhs.floats[i]), double(rhs.floats[i])));
  return y;
}

static llvm::Expected<Tensor> evalAdd(AddOp op, Scope &scope) {
  return zipped(op, scope, std::plus<double>());
}

static llvm::Expected<Tensor> evalMul(MulOp op, Scope &scope) {
  return zipped(op, scope, std::multiplies<double>());
}

static llvm::Expected<Tensor> evalScale(ScaleOp op, Scope &scope) {
  double factor = op.getFactor().convertToDouble();
  return mapped(scope.tensor(op.getX()), [&](double x) { return factor * x; });
}

// y[t, c] = factors[i] x[t, c] for the columns of part i.
static llvm::Expected<Tensor> evalScaleParts(ScalePartsOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX());
  SmallVector<double> factors;
  for (auto [factor, width] : llvm::zip(op.getFactors(), op.getWidths()))
    factors.append(width, factor);
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  for (int64_t i = 0; i < y.getNumElements(); ++i)
    y.set(i, factors[i % x.rowSize()] * x.floats[i]);
  return y;
}

static llvm::Expected<Tensor> evalSoftcap(SoftcapOp op, Scope &scope) {
  double cap = op.getCap().convertToDouble();
  return mapped(scope.tensor(op.getX()), [&](double x) { return cap * std::tanh(x / cap); });
}

// y[t, c] = x[t, c] / (1 + exp(-gate[t, 0])).
// If the gate has one value per element: y[t, c] = x[t, c] / (1 + exp(-gate[t, c])).
static llvm::Expected<Tensor> evalSigmoidGate(SigmoidGateOp op, Scope &scope) {
  if (llvm::Error error = checkSameRows(op, scope, {op.getX(), op.getGate()}))
    return error;
  const Tensor &x = scope.tensor(op.getX()), &gate = scope.tensor(op.getGate());
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  int64_t perNumber = x.rowSize() / gate.rowSize();
  for (int64_t i = 0; i < y.getNumElements(); ++i)
    y.set(i, x.floats[i] / (1 + std::exp(-double(gate.floats[i / perNumber]))));
  return y;
}

static llvm::Expected<Tensor> evalSigmoid(SigmoidOp op, Scope &scope) {
  return mapped(scope.tensor(op.getX()), [](double x) { return 1 / (1 + std::exp(-x)); });
}

template <typename OpT> static llvm::Expected<Tensor> evalActivation(OpT op, Scope &scope) {
  return mapped(scope.tensor(op.getX()),
                [](double x) { return activate(OpT::getActivation(), x); });
}

static llvm::Expected<Tensor> evalCast(CastOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX());
  Tensor y = Tensor::zeros(op.getType().getElementType(), x.shape);
  for (int64_t i = 0; i < y.getNumElements(); ++i)
    y.set(i, x.floats[i]);
  return y;
}

/// The same elements with another shape.
static Tensor reshaped(const Tensor &x, mlir::Type type) {
  Tensor y = x;
  y.shape.assign(cast<RankedTensorType>(type).getShape());
  y.shape[0] = x.shape[0];
  return y;
}

// [T, H * D] => [T, H, D].
static llvm::Expected<Tensor> evalSplitHeads(SplitHeadsOp op, Scope &scope) {
  return reshaped(scope.tensor(op.getX()), op.getType());
}

// [T, H, D] => [T, H * D].
static llvm::Expected<Tensor> evalMergeHeads(MergeHeadsOp op, Scope &scope) {
  return reshaped(scope.tensor(op.getX()), op.getType());
}

// [T, N1 + N2 + ...] => [T, N1], [T, N2], ...
static llvm::Expected<SmallVector<Value>> evalSplit(SplitOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX());
  SmallVector<Value> parts;
  int64_t begin = 0;
  for (mlir::Type type : op.getResultTypes()) {
    Tensor part = Tensor::zerosOf(type, x.shape[0]);
    int64_t width = part.shape[1];
    for (int64_t t = 0; t < x.shape[0]; ++t)
      llvm::copy(x.row(t).slice(begin, width), part.floats.begin() + t * width);
    begin += width;
    parts.push_back(std::move(part));
  }
  return parts;
}

// y[t] = x[t, index].
static llvm::Expected<Tensor> evalSelectHead(SelectHeadOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX());
  int64_t index = scope.scalar(op.getIndex()), width = x.shape[2];
  if (llvm::Error error = checkIndex(op, "head", index, x.shape[1]))
    return error;
  Tensor y = Tensor::zerosOf(op.getType(), x.shape[0]);
  for (int64_t t = 0; t < x.shape[0]; ++t)
    llvm::copy(x.row(t).slice(index * width, width), y.floats.begin() + t * width);
  return y;
}

static llvm::Expected<Value> evalProbe(ProbeOp op, Scope &scope) { return scope.get(op.getX()); }

// y[i] = x[rows[i]].
static llvm::Expected<Tensor> evalSelectRows(SelectRowsOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX()), &rows = scope.tensor(op.getRows());
  Tensor y = Tensor::zerosOf(op.getType(), rows.shape);
  for (auto [i, row] : llvm::enumerate(rows.ints)) {
    if (llvm::Error error = checkIndex(op, "row", row, x.shape[0]))
      return error;
    llvm::copy(x.row(row), y.floats.begin() + i * y.rowSize());
  }
  return y;
}

void addElementwiseOps(OpTable &table) {
  table.add(evalAdd);
  table.add(evalMul);
  table.add(evalScale);
  table.add(evalScaleParts);
  table.add(evalSoftcap);
  table.add(evalSigmoidGate);
  table.add(evalSigmoid);
  forEachActivationOp([&](auto op) { table.add(evalActivation<decltype(op)>); });
  table.add(evalCast);
  table.add(evalSplitHeads);
  table.add(evalMergeHeads);
  table.add(evalSplit);
  table.add(evalSelectHead);
  table.add(evalProbe);
  table.add(evalSelectRows);
}

} // namespace mica::interp
