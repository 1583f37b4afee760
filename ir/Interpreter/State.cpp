//===- State.cpp - ops on states of fixed size ----------------------------===//

#include "ir/Interpreter/Caches.h"

#include <cmath>

using namespace mlir;

namespace mica::interp {

/// Fails unless the previous position of the row's sequence has been written, by an earlier row or
/// step: the op would read undefined state.
static llvm::Error checkIsKnown(Operation *op, const Cache &cache, const Slots &slots, int64_t t) {
  int64_t sequence = slots.sequences[t], position = slots.positions[t];
  if (position == 0 || cache.isWritten[cache.slot(slots.layer, sequence, position - 1)])
    return llvm::Error::success();
  return opError(op, "reads position " + llvm::Twine(position - 1) + " of sequence " +
                         llvm::Twine(sequence) + ", which was never written");
}

// y[t, c] = bias[c] + sum_j weight[c, j] z[p - K + 1 + j, c] with z[p] = x[t], p = positions[t].
static llvm::Expected<SmallVector<Value>> evalCausalConv1d(CausalConv1dOp op, Scope &scope) {
  if (llvm::Error error =
          checkSameRows(op, scope, {op.getX(), op.getSequences(), op.getPositions()}))
    return std::move(error);
  const Tensor &x = scope.tensor(op.getX()), &weight = scope.tensor(op.getWeight());
  const Tensor *bias = op.getBias() ? &scope.tensor(op.getBias()) : nullptr;
  llvm::Expected<StateStep> step = beginStep(op, op.getState(), scope);
  if (!step)
    return step.takeError();
  const Slots &slots = step->slots;
  Cache &state = *step->next.cache;
  int64_t channels = x.shape[1], taps = weight.shape[1];
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    if (llvm::Error error = checkIsKnown(op, state, slots, t))
      return std::move(error);
    write(state, slots, t, SmallVector<double>(x.row(t)));
    for (int64_t c = 0; c < channels; ++c) {
      double sum = bias ? bias->floats[c] : 0;
      for (int64_t j = 0; j < taps; ++j)
        if (int64_t position = slots.positions[t] - taps + 1 + j; position >= 0)
          sum += double(weight.floats[c * taps + j]) *
                 state.data[state.offset(slots.layer, slots.sequences[t], position) + c];
      y.set(t * channels + c, sum);
    }
  }
  return SmallVector<Value>{Value(std::move(y)), Value(step->next)};
}

/// y[t, h] = formula(x[t, h], vector[h]).
template <typename Formula>
static Tensor withVector(const Tensor &x, const Tensor &vector, Formula formula) {
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  for (int64_t i = 0; i < y.getNumElements(); ++i)
    y.set(i, formula(double(x.floats[i]), double(vector.floats[i % x.rowSize()])));
  return y;
}

// y[t, h] = log(1 + exp(x[t, h] + bias[h])).
static llvm::Expected<Tensor> evalSoftplus(SoftplusOp op, Scope &scope) {
  return withVector(scope.tensor(op.getX()), scope.tensor(op.getBias()), [](double x, double bias) {
    double sum = x + bias;
    return std::max(sum, 0.0) + std::log1p(std::exp(-std::abs(sum)));
  });
}

// y[t, h] = exp(-exp(a_log[h]) dt[t, h]).
static llvm::Expected<Tensor> evalDecay(DecayOp op, Scope &scope) {
  return withVector(scope.tensor(op.getDt()), scope.tensor(op.getALog()),
                    [](double dt, double aLog) { return std::exp(-std::exp(aLog) * dt); });
}

// y[t, h, d] = factors[t, h] x[t, h, d], or factors[h] x[t, h, d].
static llvm::Expected<Tensor> evalScaleHeads(ScaleHeadsOp op, Scope &scope) {
  if (!op.hasWeight())
    if (llvm::Error error = checkSameRows(op, scope, {op.getX(), op.getFactors()}))
      return error;
  const Tensor &x = scope.tensor(op.getX()), &factors = scope.tensor(op.getFactors());
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  for (int64_t i = 0; i < y.getNumElements(); ++i)
    y.set(i, double(factors.floats[i / x.shape[2] % factors.getNumElements()]) * x.floats[i]);
  return y;
}

/// u += scale * S^T x for a matrix S [keys, values].
static void addProduct(ArrayRef<double> matrix, ArrayRef<float> x, double scale,
                       llvm::MutableArrayRef<double> u) {
  for (auto [i, factor] : llvm::enumerate(x))
    for (auto [j, sum] : llvm::enumerate(u))
      sum += scale * factor * matrix[i * u.size() + j];
}

// S[p] = decay[t] S[p - 1] + k[t] u[t]^T, y[t] = S[p]^T q[t], p = positions[t], where u[t] = v[t]
// or, with beta, beta[t] (v[t] - decay[t] S[p - 1]^T k[t]).
static llvm::Expected<SmallVector<Value>> evalLinearAttention(LinearAttentionOp op, Scope &scope) {
  SmallVector<mlir::Value> rows = op.getTokenRows();
  llvm::append_values(rows, op.getSequences(), op.getPositions());
  if (llvm::Error error = checkSameRows(op, scope, rows))
    return std::move(error);
  const Tensor &q = scope.tensor(op.getQ()), &k = scope.tensor(op.getK()),
               &v = scope.tensor(op.getV()), &decay = scope.tensor(op.getDecay());
  const Tensor *beta = op.getBeta() ? &scope.tensor(op.getBeta()) : nullptr;
  llvm::Expected<StateStep> step = beginStep(op, op.getState(), scope);
  if (!step)
    return step.takeError();
  const Slots &slots = step->slots;
  Cache &state = *step->next.cache;
  int64_t heads = v.shape[1], keys = q.shape[2], values = v.shape[2], perGroup = heads / q.shape[1];
  Tensor y = Tensor::zeros(v.elementType, v.shape);
  for (int64_t t = 0; t < v.shape[0]; ++t) {
    if (llvm::Error error = checkIsKnown(op, state, slots, t))
      return std::move(error);
    SmallVector<double> matrices(state.rowSize());
    if (int64_t position = slots.positions[t]; position > 0)
      llvm::copy(
          ArrayRef(state.data)
              .slice(state.offset(slots.layer, slots.sequences[t], position - 1), state.rowSize()),
          matrices.begin());
    for (int64_t h = 0; h < heads; ++h) {
      auto matrix = llvm::MutableArrayRef(matrices).slice(h * keys * values, keys * values);
      ArrayRef<float> key = k.row(t).slice(h / perGroup * keys, keys),
                      value = v.row(t).slice(h * values, values);
      for (double &s : matrix)
        s *= decay.floats[t * heads + h];
      SmallVector<double> u(value);
      if (beta) {
        addProduct(matrix, key, -1, u);
        for (double &number : u)
          number *= beta->floats[t * heads + h];
      }
      for (int64_t i = 0; i < keys * values; ++i)
        matrix[i] += key[i / values] * u[i % values];
      SmallVector<double> sums(values);
      addProduct(matrix, q.row(t).slice(h / perGroup * keys, keys), 1, sums);
      for (int64_t j = 0; j < values; ++j)
        y.set((t * heads + h) * values + j, sums[j]);
    }
    write(state, slots, t, matrices);
  }
  return SmallVector<Value>{Value(std::move(y)), Value(step->next)};
}

void addStateOps(OpTable &table) {
  table.add(evalCausalConv1d);
  table.add(evalSoftplus);
  table.add(evalDecay);
  table.add(evalScaleHeads);
  table.add(evalLinearAttention);
}

} // namespace mica::interp
