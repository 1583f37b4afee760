//===- Attention.cpp - positions, caches and attention --------------------===//

#include "ir/Interpreter/Caches.h"
#include "ir/Interpreter/RopeRows.h"
#include "ir/Mica/RopeFrequencies.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mica::interp {

static llvm::Expected<Tensor> evalRope(RopeOp op, Scope &scope) {
  SmallVector<mlir::Value> rowOperands{op.getX(), op.getPositions()};
  if (op.getLengths())
    rowOperands.push_back(op.getLengths());
  if (llvm::Error error = checkSameRows(op, scope, rowOperands))
    return error;
  const Tensor &x = scope.tensor(op.getX());
  RopeRows rows(op, op.getRotaryWidth(), scope);
  int64_t heads = x.shape[1], headDim = x.shape[2];
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    Angles angles = rows.at(t);
    for (int64_t h = 0; h < heads; ++h) {
      int64_t begin = (t * heads + h) * headDim;
      SmallVector<double> head(ArrayRef(x.floats).slice(begin, headDim));
      rotate(head, angles, op.getPairing());
      for (auto [i, value] : llvm::enumerate(head))
        y.set(begin + i, value);
    }
  }
  return y;
}

// y[t, i] = sin((positions[t] + offset) f[i]), y[t, n + i] = cos(...); zero if positions[t] +
// offset is `padding_idx`.
static llvm::Expected<Tensor> evalSinusoid(SinusoidOp op, Scope &scope) {
  const Tensor &positions = scope.tensor(op.getPositions());
  Tensor y = Tensor::zerosOf(op.getType(), positions.shape);
  int64_t count = y.rowSize() / 2;
  SmallVector<float> frequencies = sinusoidFrequencies(count);
  for (auto [t, position] : llvm::enumerate(positions.ints)) {
    int64_t number = position + static_cast<int64_t>(op.getOffset());
    if (op.getPaddingIdx() && number == static_cast<int64_t>(*op.getPaddingIdx()))
      continue;
    Angles angles = anglesAt(number, frequencies, 1);
    for (int64_t i = 0; i < count; ++i) {
      y.set(t * 2 * count + i, angles.sines[i]);
      y.set(t * 2 * count + count + i, angles.cosines[i]);
    }
  }
  return y;
}

// y[t, h] = [a[t, h], b[t, h]].
static llvm::Expected<Tensor> evalConcatHeads(ConcatHeadsOp op, Scope &scope) {
  if (llvm::Error error = checkSameRows(op, scope, {op.getA(), op.getB()}))
    return error;
  Tensor y = Tensor::zerosOf(op.getType(), scope.tensor(op.getA()).shape[0]);
  int64_t heads = y.shape[1], width = y.shape[2], begin = 0;
  for (mlir::Value part : {op.getA(), op.getB()}) {
    const Tensor &x = scope.tensor(part);
    int64_t own = x.shape[2];
    for (int64_t head = 0; head < y.shape[0] * heads; ++head)
      std::copy_n(x.floats.begin() + (x.shape[1] == 1 ? head / heads : head) * own, own,
                  y.floats.begin() + head * width + begin);
    begin += own;
  }
  return y;
}

// cache[layer, sequences[t], positions[t]] = x[t].
static llvm::Expected<Value> evalKvAppend(KvAppendOp op, Scope &scope) {
  if (llvm::Error error =
          checkSameRows(op, scope, {op.getX(), op.getSequences(), op.getPositions()}))
    return error;
  const Tensor &x = scope.tensor(op.getX());
  llvm::Expected<StateStep> step = beginStep(op, op.getCache(), scope);
  if (!step)
    return step.takeError();
  for (int64_t t = 0; t < x.shape[0]; ++t)
    write(*step->next.cache, step->slots, t, SmallVector<double>(x.row(t)));
  return Value(step->next);
}

// y = cache[layer, ..., 0 .. D - 1], [B, P, G, D]. Not rounded again: a part of a quantized head
// keeps the scale of the whole head.
static llvm::Expected<Value> evalKvRead(KvReadOp op, Scope &scope) {
  const CacheVersion &version = scope.cache(op.getCache());
  const Cache &cache = *version.cache;
  int64_t layer = scope.scalar(op.getLayer());
  if (llvm::Error error = checkSlots(op, version, {layer, {}, {}}))
    return error;
  KvCacheType type = op.getCache().getType();
  int64_t headDim = type.getHeadDim(), width = op.getType().getDimSize(3);
  Tensor y =
      Tensor::zeros(type.getElementType(), {cache.batch, cache.positions, type.getHeads(), width});
  auto from = cache.data.begin() + cache.offset(layer, 0, 0);
  for (int64_t head = 0; head < y.getNumElements() / width; ++head)
    std::copy_n(from + head * headDim, width, y.floats.begin() + head * width);
  return Value(std::move(y));
}

// y[b, p, h] = x[b, p, h / times].
static llvm::Expected<Tensor> evalRepeatKv(RepeatKvOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX());
  int64_t times = op.getTimes(), headDim = x.shape[3];
  Tensor y = Tensor::zeros(x.elementType, {x.shape[0], x.shape[1], x.shape[2] * times, headDim});
  for (int64_t head = 0; head < y.getNumElements() / headDim; ++head)
    std::copy_n(x.floats.begin() + head / times * headDim, headDim,
                y.floats.begin() + head * headDim);
  return y;
}

/// The operands of attention, and the positions that a query attends to.
struct Attention {
  const Tensor &k, &v;   // [B, P, G, D]
  const Tensor *keyMask; // [B, P] or null
  bool causal;
  double scale;
  std::optional<int64_t> window;
  std::optional<double> softcap;
  ArrayRef<double> slopes; // per query head, or empty
  const Tensor *sinks;     // per query head, or null

  bool attendsTo(int64_t sequence, int64_t position, int64_t key) const {
    if (causal && key > position)
      return false;
    if (window && key <= position - *window)
      return false;
    return !keyMask || keyMask->ints[sequence * k.shape[1] + key];
  }

  ArrayRef<float> head(const Tensor &x, int64_t sequence, int64_t key, int64_t group) const {
    int64_t headDim = x.shape[3];
    return ArrayRef(x.floats).slice(((sequence * x.shape[1] + key) * x.shape[2] + group) * headDim,
                                    headDim);
  }

  /// scale q k, soft-capped: c tanh(x / c).
  double score(ArrayRef<float> q, ArrayRef<float> key) const {
    double x = scale * dot(q, key);
    return softcap ? *softcap * std::tanh(x / *softcap) : x;
  }

  /// sum_p exp(score_p - max) v_p / sum_p exp(score_p - max) over the keys p that the query attends
  /// to; zero if there are none.
  SmallVector<double> operator()(ArrayRef<float> q, int64_t sequence, int64_t position,
                                 int64_t queryHead, int64_t group) const {
    SmallVector<std::pair<int64_t, double>> scores;
    double maximum = -std::numeric_limits<double>::infinity();
    for (int64_t key = 0; key < k.shape[1]; ++key)
      if (attendsTo(sequence, position, key)) {
        double bias = slopes.empty() ? 0 : slopes[queryHead] * double(key - position);
        scores.emplace_back(key, score(q, head(k, sequence, key, group)) + bias);
        maximum = std::max(maximum, scores.back().second);
      }
    if (sinks)
      maximum = std::max<double>(maximum, sinks->floats[queryHead]);
    double total = sinks ? std::exp(sinks->floats[queryHead] - maximum) : 0;
    SmallVector<double> y(v.shape[3], 0.0);
    for (auto [key, value] : scores) {
      double weight = std::exp(value - maximum);
      total += weight;
      for (auto [sum, element] : llvm::zip_equal(y, head(v, sequence, key, group)))
        sum += weight * element;
    }
    for (double &sum : y)
      sum = scores.empty() ? 0 : sum / total;
    return y;
  }
};

/// Checks dynamic extents: k, v and the mask have the same B and P; sequences and positions are
/// within them.
static llvm::Error checkAttention(AttentionOp op, Scope &scope) {
  if (llvm::Error error =
          checkSameRows(op, scope, {op.getQ(), op.getSequences(), op.getPositions()}))
    return error;
  const Tensor &k = scope.tensor(op.getK()), &v = scope.tensor(op.getV());
  ArrayRef<int64_t> slots = ArrayRef(k.shape).take_front(2);
  if (ArrayRef(v.shape).take_front(2) != slots)
    return opError(op, "has keys and values for different numbers of sequences or positions");
  if (op.getKeyMask() && ArrayRef(scope.tensor(op.getKeyMask()).shape) != slots)
    return opError(op,
                   "has a key_mask whose shape is not that of the keys' sequences and positions");
  for (int64_t sequence : scope.tensor(op.getSequences()).ints)
    if (llvm::Error error = checkIndex(op, "sequence", sequence, k.shape[0]))
      return error;
  for (int64_t position : scope.tensor(op.getPositions()).ints)
    if (llvm::Error error = checkIndex(op, "position", position, k.shape[1]))
      return error;
  return llvm::Error::success();
}

// y[t, h] = softmax(scale q[t, h] k[s, :, h / R]^T + mask) v[s, :, h / R].
static llvm::Expected<Tensor> evalAttention(AttentionOp op, Scope &scope) {
  if (llvm::Error error = checkAttention(op, scope))
    return error;
  const Tensor &q = scope.tensor(op.getQ()), &k = scope.tensor(op.getK()),
               &v = scope.tensor(op.getV());
  const Tensor &sequences = scope.tensor(op.getSequences()),
               &positions = scope.tensor(op.getPositions());
  Attention attention{
      k,
      v,
      op.getKeyMask() ? &scope.tensor(op.getKeyMask()) : nullptr,
      op.getMask() == MaskKind::Causal,
      op.getScale().convertToDouble(),
      op.getWindow(),
      llvm::transformOptional(op.getSoftcap(), [](APFloat cap) { return cap.convertToDouble(); }),
      op.getAlibi().value_or(ArrayRef<double>()),
      op.getSinks() ? &scope.tensor(op.getSinks()) : nullptr};
  int64_t heads = q.shape[1], repeats = heads / k.shape[2], headDim = q.shape[2];
  Tensor y = Tensor::zerosOf(op.getType(), q.shape[0]);
  for (int64_t t = 0; t < q.shape[0]; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      ArrayRef<float> query = q.row(t).slice(h * headDim, headDim);
      SmallVector<double> head =
          attention(query, sequences.ints[t], positions.ints[t], h, h / repeats);
      for (auto [i, value] : llvm::enumerate(head))
        y.set((t * heads + h) * v.shape[3] + i, value);
    }
  return y;
}

void addAttentionOps(OpTable &table) {
  table.add(evalRope);
  table.add(evalSinusoid);
  table.add(evalConcatHeads);
  table.add(evalKvAppend);
  table.add(evalKvRead);
  table.add(evalRepeatKv);
  table.add(evalAttention);
}

} // namespace mica::interp
