//===- Linear.cpp - matmuls with weights ----------------------------------===//

#include "ir/Interpreter/Formulas.h"
#include "ir/Interpreter/OpTable.h"

using namespace mlir;

namespace mica::interp {

// y[t] = table[tokens[t]].
static llvm::Expected<Tensor> evalEmbedding(EmbeddingOp op, Scope &scope) {
  const Tensor &tokens = scope.tensor(op.getTokens()), &table = scope.tensor(op.getTable());
  Tensor y = Tensor::zerosOf(op.getType(), tokens.shape);
  for (auto [t, token] : llvm::enumerate(tokens.ints)) {
    if (llvm::Error error = checkIndex(op, "token", token, table.shape[0]))
      return error;
    llvm::copy(table.row(token), y.floats.begin() + t * y.rowSize());
  }
  return y;
}

/// y[t, n] = sum_k x[t, k] w[n, k] + bias[n] + residual[t, n]; `bias` and `residual` may be null.
static Tensor product(mlir::Type type, const Tensor &x, const Tensor &weight, const Tensor *bias,
                      const Tensor *residual) {
  Tensor rounded;
  const Tensor &w = asMultiplied(weight, x.elementType, rounded);
  Tensor y = Tensor::zerosOf(type, x.shape[0]);
  int64_t columns = w.shape[0];
  for (int64_t t = 0; t < x.shape[0]; ++t)
    for (int64_t n = 0; n < columns; ++n) {
      int64_t index = t * columns + n;
      double sum = dot(x.row(t), w.row(n));
      y.set(index, sum + (bias ? bias->floats[n] : 0) + (residual ? residual->floats[index] : 0));
    }
  return y;
}

// y = x W^T + bias + residual.
static llvm::Expected<Tensor> evalLinear(LinearOp op, Scope &scope) {
  auto optional = [&](mlir::Value value) { return value ? &scope.tensor(value) : nullptr; };
  if (op.getResidual())
    if (llvm::Error error = checkSameRows(op, scope, {op.getX(), op.getResidual()}))
      return error;
  return product(op.getType(), scope.tensor(op.getX()), scope.tensor(op.getWeight()),
                 optional(op.getBias()), optional(op.getResidual()));
}

// y[t, h] = x[t, h] W[h]^T.
static llvm::Expected<Tensor> evalHeadLinear(HeadLinearOp op, Scope &scope) {
  Tensor rounded;
  const Tensor &x = scope.tensor(op.getX()),
               &w = asMultiplied(scope.tensor(op.getWeight()), x.elementType, rounded);
  Tensor y = Tensor::zerosOf(op.getType(), x.shape[0]);
  int64_t heads = w.shape[0], rows = w.shape[1], width = w.shape[2];
  for (int64_t head = 0; head < x.shape[0] * heads; ++head)
    for (int64_t n = 0; n < rows; ++n)
      y.set(head * rows + n, dot(ArrayRef(x.floats).slice(head * width, width),
                                 w.row(head % heads).slice(n * width, width)));
  return y;
}

// logits = x W^T.
static llvm::Expected<Tensor> evalLmHead(LmHeadOp op, Scope &scope) {
  return product(op.getType(), scope.tensor(op.getX()), scope.tensor(op.getWeight()), nullptr,
                 nullptr);
}

void addLinearOps(OpTable &table) {
  table.add(evalEmbedding);
  table.add(evalLinear);
  table.add(evalHeadLinear);
  table.add(evalLmHead);
}

} // namespace mica::interp
