//===- State.cpp - ops on states of fixed size ----------------------------===//

#include "ir/Interpreter/Caches.h"

using namespace mlir;

namespace mica::interp {

/// Fails unless the row before each, in its sequence, is one of the rows before it or of earlier
/// steps: a filter would read what was never there.
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
  const CacheVersion &version = scope.cache(op.getState());
  Slots slots = slotsOf(op, scope);
  if (llvm::Error error = checkSlots(op, version, slots))
    return std::move(error);
  CacheVersion next = consume(version);
  Cache &state = *next.cache;
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
  return SmallVector<Value>{Value(std::move(y)), Value(next)};
}

// S[p] = decay[t] S[p - 1] + k[t] v[t]^T, y[t] = S[p]^T q[t], p = positions[t].
static llvm::Expected<SmallVector<Value>> evalLinearAttention(LinearAttentionOp op, Scope &scope) {
  if (llvm::Error error = checkSameRows(
          op, scope,
          {op.getQ(), op.getK(), op.getV(), op.getDecay(), op.getSequences(), op.getPositions()}))
    return std::move(error);
  const Tensor &q = scope.tensor(op.getQ()), &k = scope.tensor(op.getK()),
               &v = scope.tensor(op.getV()), &decay = scope.tensor(op.getDecay());
  const CacheVersion &version = scope.cache(op.getState());
  Slots slots = slotsOf(op, scope);
  if (llvm::Error error = checkSlots(op, version, slots))
    return std::move(error);
  CacheVersion next = consume(version);
  Cache &state = *next.cache;
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
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < keys; ++i)
        for (int64_t j = 0; j < values; ++j) {
          double &s = matrices[(h * keys + i) * values + j];
          s = s * decay.floats[t * heads + h] +
              double(k.row(t)[h / perGroup * keys + i]) * v.row(t)[h * values + j];
        }
    write(state, slots, t, matrices);
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t j = 0; j < values; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < keys; ++i)
          sum += q.row(t)[h / perGroup * keys + i] * matrices[(h * keys + i) * values + j];
        y.set((t * heads + h) * values + j, sum);
      }
  }
  return SmallVector<Value>{Value(std::move(y)), Value(next)};
}

void addStateOps(OpTable &table) {
  table.add(evalCausalConv1d);
  table.add(evalLinearAttention);
}

} // namespace mica::interp
