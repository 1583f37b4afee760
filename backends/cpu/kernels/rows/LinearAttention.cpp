//===- LinearAttention.cpp - linear attention -----------------------------===//
//
// For position p in the chunk that begins at position c, the unrolled recurrence is
//
//   y[p] = sum_{i = c..p} w[i] (q . k[i]) u[i] + w[c - 1] q^T S[c - 1],   w[i] = decay[i + 1..p]
//
// where w is a product of decays, computed from p downward: no exponentials, and no logarithms
// whose sums cancel. The matrix of the next chunk is the same sum of k[i] u[i]^T. Without beta, u
// is v; with the delta rule it is beta (v - the same sum up to p - 1 for k instead of q). The ring
// stores u as the values.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/kernels/rows/LinearAttention.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

constexpr int64_t kChunk = RecurrentStateType::kChunk, kSlots = RecurrentStateType::kSlots;

/// Consecutive columns as vectors, each with a number of live lanes (null: all).
struct Block {
  Value column;
  SmallVector<Value> lives;

  /// The offset of vector `index` in a row of columns that begins at `offset`.
  Value at(KernelBuilder &b, Value offset, size_t index) const {
    return b.add(b.add(offset, column), static_cast<int64_t>(index) * kLanes);
  }
};

/// State shared by the rows of a call.
class Scan {
public:
  Scan(KernelBuilder &b, ValueRange args, RecurrentStateType type, bool hasBeta)
      : b(b), type(type), q(args[2]), k(args[3]), v(args[4]), decay(args[5]),
        beta(hasBeta ? args[6] : Value()), keys(type.getKeyDim()), values(type.getValueDim()),
        headsOfGroup(type.getHeads() / cast<MemRefType>(q.getType()).getDimSize(1)),
        weights(b.stackBuffer({kChunk + 1}, b.getF32Type())),
        scores(b.stackBuffer({kChunk}, b.getF32Type())) {
    ValueRange rest = args.drop_front(hasBeta ? 7 : 6);
    sequences = rest[0];
    positions = rest[1];
    layer = rest[2];
    y = rest[3];
    state = rest[4];
  }

  void head(Value index);

private:
  Value at(Value offset) { return b.load(state, place(offset)); }
  SmallVector<Value> place(Value offset) { return {layer, sequence, ofHead, offset}; }
  Value matrix(Value chunk) { return b.mul(b.rem(chunk, 2), keys * values); }
  Value slot(Value position) { return b.rem(position, kSlots); }
  Value keysAt(Value position) { return b.add(b.mul(slot(position), keys), type.getKeysOffset()); }
  Value valuesAt(Value position) {
    return b.add(b.mul(slot(position), values), type.getValuesOffset());
  }
  Value decayAt(Value position) { return b.add(slot(position), type.getDecaysOffset()); }

  void keep(Value row, Value position);
  void weigh(Value first, Value count);
  void closeChunk(Value chunk);
  using Store = llvm::function_ref<void(Value column, Value live, Value sum)>;
  void score(Value rows, Value row, Value first, Value count);
  void read(Value rows, Value row, Value position, Value count, Store store);
  void correct(Value row, Value position, Value count);
  Value keysBefore(Value chunk);
  void eachBlock(llvm::function_ref<void(const Block &)> body);
  SmallVector<Value> addScaled(const Block &block, Value scale, Value offset, ValueRange sums);

  KernelBuilder &b;
  RecurrentStateType type;
  Value q, k, v, decay, beta, sequences, positions, layer, y, state; // beta may be null
  int64_t keys, values, headsOfGroup;
  Value weights, scores; // [0] of the matrix, [1 + i] of position i of the chunk; of positions
  Value ofHead, group, sequence;
};

/// Stores the row in the ring; its values only if they are v.
void Scan::keep(Value row, Value position) {
  Value toKeys = keysAt(position), toValues = valuesAt(position);
  b.eachVector(keys, [&](Value column, Value live) {
    b.storeVector(b.loadVector(k, {row, group, column}, live), state, place(b.add(toKeys, column)),
                  live);
  });
  if (!beta)
    b.eachVector(values, [&](Value column, Value live) {
      b.storeVector(b.loadVector(v, {row, ofHead, column}, live), state,
                    place(b.add(toValues, column)), live);
    });
  b.store(b.load(decay, {row, ofHead}), state, place(decayAt(position)));
}

/// Computes the weights, at the last of the `count` positions starting at `first`, of these
/// positions and of the matrix before them.
void Scan::weigh(Value first, Value count) {
  Value all = b.carry(b.idx(0), count, 1, b.f32(1), [&](Value step, ValueRange carried) {
    Value i = b.sub(count, step); // counted from 1
    b.store(carried[0], weights, i);
    Value position = b.add(first, b.sub(i, b.idx(1)));
    return SmallVector<Value>{b.mulf(carried[0], at(decayAt(position)))};
  })[0];
  b.store(all, weights, b.idx(0));
}

/// Calls `body` for blocks of the columns of values with enough vectors for independent sums.
void Scan::eachBlock(llvm::function_ref<void(const Block &)> body) {
  int64_t maxVectors = b.isWide() ? 8 : 4, width = maxVectors * kLanes,
          whole = values / width * width;
  if (whole > 0)
    b.loop(b.idx(0), b.idx(whole), width,
           [&](Value column) { body({column, SmallVector<Value>(maxVectors)}); });
  if (whole == values)
    return;
  SmallVector<Value> lives(llvm::divideCeil(values - whole, kLanes));
  if (int64_t live = values % kLanes)
    lives.back() = b.idx(live);
  body({b.idx(whole), lives});
}

/// sums + scale * the numbers of the state starting at `offset`, for the columns of a block.
SmallVector<Value> Scan::addScaled(const Block &block, Value scale, Value offset, ValueRange sums) {
  SmallVector<Value> result;
  Value factor = b.broadcast(scale);
  for (auto [index, live, sum] : llvm::enumerate(block.lives, sums))
    result.push_back(
        b.fma(factor, b.loadVector(state, place(block.at(b, offset, index)), live), sum));
  return result;
}

/// The number of keys of the matrix before `chunk`: none before the first chunk, whose memory may
/// contain the matrix of an earlier sequence.
Value Scan::keysBefore(Value chunk) {
  Value hasMatrix = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, chunk, b.idx(0));
  return arith::SelectOp::create(b, hasMatrix, b.idx(keys), b.idx(0));
}

/// Computes the matrix before `chunk` from the matrix before the previous chunk and the rows since.
void Scan::closeChunk(Value chunk) {
  Value last = b.sub(chunk, b.idx(1)), first = b.mul(last, kChunk);
  weigh(first, b.idx(kChunk));
  Value from = matrix(last), to = matrix(chunk);
  Value hasMatrix = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, last, b.idx(0));
  Value kept = b.load(weights, b.idx(0));
  b.loop(keys, [&](Value key) {
    Value row = b.mul(key, values);
    eachBlock([&](const Block &block) {
      SmallVector<Value> zeros(block.lives.size(), b.splat(0));
      SmallVector<Value> sums = addScaled(block, kept, b.add(from, row), zeros);
      for (Value &sum : sums)
        sum = arith::SelectOp::create(b, hasMatrix, sum, b.splat(0));
      sums = b.carry(b.idx(0), b.idx(kChunk), 1, sums, [&](Value i, ValueRange carried) {
        Value position = b.add(first, i);
        Value factor = b.mulf(b.load(weights, b.add(i, 1)), at(b.add(keysAt(position), key)));
        return addScaled(block, factor, valuesAt(position), carried);
      });
      for (auto [index, live, sum] : llvm::enumerate(block.lives, sums))
        b.storeVector(sum, state, place(block.at(b, b.add(to, row), index)), live);
    });
  });
}

/// Computes the scores of the first `count` positions of the chunk for a row of q or k.
void Scan::score(Value rows, Value row, Value first, Value count) {
  b.loop(b.idx(0), count, 1, [&](Value i) {
    Value from = keysAt(b.add(first, i));
    Value sums = b.eachVector(keys, b.splat(0), [&](Value column, Value live, Value sums) {
      return b.fma(b.loadVector(rows, {row, group, column}, live),
                   b.loadVector(state, place(b.add(from, column)), live), sums);
    });
    b.store(b.mulf(b.reduceAdd(sums), b.load(weights, b.add(i, 1))), scores, i);
  });
}

/// Stores the result of a row of q or k for the matrix and the first `count` positions of the
/// chunk.
void Scan::read(Value rows, Value row, Value position, Value count, Store store) {
  Value chunk = b.div(position, kChunk), first = b.mul(chunk, kChunk);
  score(rows, row, first, count);
  Value from = matrix(chunk), before = keysBefore(chunk),
        kept = b.broadcast(b.load(weights, b.idx(0)));
  eachBlock([&](const Block &block) {
    SmallVector<Value> sums(block.lives.size(), b.splat(0));
    sums = b.carry(b.idx(0), before, 1, sums, [&](Value key, ValueRange carried) {
      return addScaled(block, b.loadF32(rows, {row, group, key}), b.add(from, b.mul(key, values)),
                       carried);
    });
    for (Value &sum : sums)
      sum = b.mulf(kept, sum);
    sums = b.carry(b.idx(0), count, 1, sums, [&](Value i, ValueRange carried) {
      return addScaled(block, b.load(scores, i), valuesAt(b.add(first, i)), carried);
    });
    for (auto [index, live, sum] : llvm::enumerate(block.lives, sums))
      store(block.at(b, b.idx(0), index), live, sum);
  });
}

/// The row's values: beta times the difference between v and the result of the state before the
/// row, to which `count` positions of the chunk belong.
void Scan::correct(Value row, Value position, Value count) {
  Value share = b.broadcast(b.loadF32(beta, {row, ofHead})), to = valuesAt(position);
  read(k, row, position, count, [&](Value column, Value live, Value sum) {
    Value missing = b.subf(b.loadVector(v, {row, ofHead, column}, live), sum);
    b.storeVector(b.mulf(share, missing), state, place(b.add(to, column)), live);
  });
}

void Scan::head(Value index) {
  ofHead = index;
  group = b.div(index, headsOfGroup);
  b.loop(b.idx(0), memref::DimOp::create(b, positions, 0), 1, [&](Value row) {
    sequence = b.loadIndex(sequences, row);
    Value position = b.loadIndex(positions, row);
    Value isFirst = b.isEqual(b.rem(position, kChunk), b.idx(0));
    Value hasBefore = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, position, b.idx(0));
    b.when(arith::AndIOp::create(b, isFirst, hasBefore),
           [&] { closeChunk(b.div(position, kChunk)); });
    keep(row, position);
    Value inChunk = b.rem(position, kChunk), count = b.add(inChunk, 1);
    weigh(b.sub(position, inChunk), count);
    if (beta)
      correct(row, position, inChunk);
    read(q, row, position, count, [&](Value column, Value live, Value sum) {
      b.storeVector(sum, y, {row, ofHead, column}, live);
    });
  });
}

} // namespace

void mica::cpu::emitLinearAttention(KernelBuilder &b, ValueRange args, RecurrentStateType type,
                                    bool hasBeta) {
  Scan scan(b, args, type, hasBeta);
  b.loop(args[0], args[1], 1, [&](Value index) { scan.head(index); });
}
