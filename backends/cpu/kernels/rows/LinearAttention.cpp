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
// Consecutive rows of a chunk are a run, whose rows are computed in tiles: numbers of the matrix
// and of the ring are loaded once per tile. Every sum is added in the order of the formula's terms,
// whatever the tile, so that the result of a row does not depend on the other rows of its run.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/kernels/rows/LinearAttention.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

constexpr int64_t kChunk = RecurrentStateType::kChunk, kSlots = RecurrentStateType::kSlots;
/// Heads whose states are updated together: those of a group share the scores of a run, and few
/// enough remain in the second-level cache from one run to the next.
constexpr int64_t kHeads = 4;
/// Rows, or keys of a matrix, of a tile.
constexpr int64_t kTile = 4;

/// Consecutive columns as vectors, each with a number of live lanes (null: all).
struct Block {
  Value column;
  SmallVector<Value> lives;

  /// The offset of vector `index` in a row of columns that begins at `offset`.
  Value at(KernelBuilder &b, Value offset, size_t index) const {
    return b.add(b.add(offset, column), static_cast<int64_t>(index) * kLanes);
  }
};

/// Vectors of columns of a tile, whose sums are held in registers.
int64_t vectorsOfTile(const KernelBuilder &b) { return b.isWide() ? 4 : 1; }

/// The rows of a call, and those of the run that is being computed.
class Scan {
public:
  Scan(KernelBuilder &b, ValueRange args, RecurrentStateType type, bool hasBeta);

  /// Computes all rows of the heads from `begin` up to `end`.
  void heads(Value begin, Value end);

private:
  /// Rows of q or k, and their scores.
  struct Rows {
    Value rows;
    Value products; ///< [i, r]: row r of the run times the key of position i of the chunk
    Value scores;   ///< the same times the weights of the current head
  };

  Value at(Value offset) { return b.load(state, place(offset)); }
  SmallVector<Value> place(Value offset) { return {layer, sequence, ofHead, offset}; }
  Value matrix(Value chunk) { return b.mul(b.rem(chunk, 2), keys * values); }
  // Offsets in the ring of position i of `chunk`.
  Value slot(Value chunk, Value i) {
    return b.add(b.mul(b.rem(chunk, kSlots / kChunk), kChunk), i);
  }
  Value keysAt(Value chunk, Value i) {
    return b.add(b.mul(slot(chunk, i), keys), type.getKeysOffset());
  }
  Value valuesAt(Value chunk, Value i) {
    return b.add(b.mul(slot(chunk, i), values), type.getValuesOffset());
  }
  Value decayAt(Value chunk, Value i) { return b.add(slot(chunk, i), type.getDecaysOffset()); }
  Value isAbove(Value a, Value other) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, a, other);
  }

  Value lengthOfRun();
  void runOf(Value head, Value firstHead);
  void keep();
  void closeChunk();
  void multiply(const Rows &of);
  void multiply(const Rows &of, Value r, Value i, int64_t rows, int64_t keysOfTile);
  void weigh();
  void compute(const Block &block, Value r, int64_t rows);
  SmallVector<Value> read(ArrayRef<Rows> all, const Block &block, Value r, int64_t rows,
                          Value positionsBefore);
  SmallVector<Value> factorsOf(const Rows &of, Value i, Value r, int64_t rows);
  void eachBlock(int64_t maxVectors, llvm::function_ref<void(const Block &)> body);
  SmallVector<Value> load(const Block &block, Value offset);
  Value inMatrix(const Block &block, Value matrix, Value key, size_t index);
  SmallVector<Value> loadKey(const Block &block, Value matrix, Value key);
  SmallVector<Value> carrySums(int64_t rows, Value to, int64_t step, ValueRange sums,
                               KernelBuilder::CarryBody body);
  static void addProducts(KernelBuilder &b, ArrayRef<Value> factors, ArrayRef<Value> vectors,
                          MutableArrayRef<Value> sums);

  KernelBuilder &b;
  RecurrentStateType type;
  Value k, v, decay, beta, sequences, positions, layer, y, state; // beta may be null
  int64_t keys, values, headsOfGroup;
  Rows ofQ, ofK; // those of k only with beta
  Value kept;    // the weights of the matrix, by row
  // For the next matrix: the weights of the positions; the keys of 16 columns times these.
  Value weights, factors;
  Value ofHead, group;
  // The run: its first row, position i of the chunk, and number of rows.
  Value row, sequence, chunk, first, count;
};

Scan::Scan(KernelBuilder &b, ValueRange args, RecurrentStateType type, bool hasBeta)
    : b(b), type(type), k(args[3]), v(args[4]), decay(args[5]), beta(hasBeta ? args[6] : Value()),
      keys(type.getKeyDim()), values(type.getValueDim()),
      headsOfGroup(type.getHeads() / cast<MemRefType>(k.getType()).getDimSize(1)),
      kept(b.stackBuffer({kChunk}, b.getF32Type())),
      weights(b.stackBuffer({kChunk}, b.getF32Type())),
      factors(b.stackBuffer({kChunk, kLanes}, b.getF32Type())) {
  ValueRange rest = args.drop_front(hasBeta ? 7 : 6);
  sequences = rest[0];
  positions = rest[1];
  layer = rest[2];
  y = rest[3];
  state = rest[4];
  auto scoresOf = [&](Value rows) -> Rows {
    auto square = [&] { return b.stackBuffer({kChunk, kChunk}, b.getF32Type()); };
    Rows of{rows, square(), square()};
    // Vectors of products are multiplied by weights even where a run has no rows: by numbers, not
    // by what the memory contains, which might be subnormal and slow.
    b.loop(kChunk, [&](Value i) {
      for (int64_t r = 0; r < kChunk; r += kLanes)
        b.storeVector(b.splat(0), of.products, {i, b.idx(r)});
    });
    return of;
  };
  ofQ = scoresOf(args[2]);
  if (beta)
    ofK = scoresOf(k);
}

/// Calls `body` for blocks of up to `maxVectors` vectors of the columns of values.
void Scan::eachBlock(int64_t maxVectors, llvm::function_ref<void(const Block &)> body) {
  int64_t width = maxVectors * kLanes, whole = values / width * width;
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

/// The numbers of the state starting at `offset`, for the columns of a block.
SmallVector<Value> Scan::load(const Block &block, Value offset) {
  SmallVector<Value> vectors;
  for (auto [index, live] : llvm::enumerate(block.lives))
    vectors.push_back(b.loadVector(state, place(block.at(b, offset, index)), live));
  return vectors;
}

/// The offset of vector `index` of a block in the row `key` of the matrix at `matrix`. A matrix is
/// stored by vectors of columns, all keys of one after the other: reading a few columns reads
/// consecutive memory.
Value Scan::inMatrix(const Block &block, Value matrix, Value key, size_t index) {
  Value live = block.lives[index];
  int64_t width = live ? *getConstantIntValue(live) : kLanes;
  Value vector = b.mul(block.at(b, b.idx(0), index), keys);
  return b.add(b.add(matrix, vector), b.mul(key, width));
}

/// The row `key` of the matrix at `matrix`, for the columns of a block.
SmallVector<Value> Scan::loadKey(const Block &block, Value matrix, Value key) {
  SmallVector<Value> vectors;
  for (auto [index, live] : llvm::enumerate(block.lives))
    vectors.push_back(b.loadVector(state, place(inMatrix(block, matrix, key, index)), live));
  return vectors;
}

/// A loop up to `to` that adds to the sums of `rows` rows. Those of a tile use all registers: LLVM
/// may unroll only the loop of a single row.
SmallVector<Value> Scan::carrySums(int64_t rows, Value to, int64_t step, ValueRange sums,
                                   KernelBuilder::CarryBody body) {
  return rows > 1 ? b.carryRolled(b.idx(0), to, step, sums, body)
                  : b.carry(b.idx(0), to, step, sums, body);
}

/// Adds the products of every factor and all vectors to `sums`, ordered by factor.
void Scan::addProducts(KernelBuilder &b, ArrayRef<Value> factors, ArrayRef<Value> vectors,
                       MutableArrayRef<Value> sums) {
  for (auto [index, factor] : llvm::enumerate(factors)) {
    Value all = b.broadcast(factor);
    for (auto [vector, sum] :
         llvm::zip_equal(vectors, sums.slice(index * vectors.size(), vectors.size())))
      sum = b.fma(all, vector, sum);
  }
}

/// The number of rows starting at `row` that continue its sequence within the chunk.
Value Scan::lengthOfRun() {
  Value rest = b.sub(memref::DimOp::create(b, positions, 0), row),
        maxLength = arith::MinUIOp::create(b, rest, b.sub(b.idx(kChunk), first)),
        position = b.loadIndex(positions, row);
  return b.carry(b.idx(1), maxLength, 1, b.idx(1), [&](Value i, ValueRange length) {
    Value next = b.add(row, i);
    Value continues = b.isEqual(b.loadIndex(positions, next), b.add(position, i));
    for (Value same : {b.isEqual(b.loadIndex(sequences, next), sequence), b.isEqual(length[0], i)})
      continues = arith::AndIOp::create(b, continues, same);
    return SmallVector<Value>{
        arith::SelectOp::create(b, continues, b.add(length[0], 1), length[0])};
  })[0];
}

/// Stores the rows of the run in the ring; their values only if they are v.
void Scan::keep() {
  b.loop(b.idx(0), count, 1, [&](Value r) {
    Value from = b.add(row, r), i = b.add(first, r);
    Value toKeys = keysAt(chunk, i), toValues = valuesAt(chunk, i);
    b.eachVector(keys, [&](Value column, Value live) {
      b.storeVector(b.loadVector(k, {from, group, column}, live), state,
                    place(b.add(toKeys, column)), live);
    });
    if (!beta)
      b.eachVector(values, [&](Value column, Value live) {
        b.storeVector(b.loadVector(v, {from, ofHead, column}, live), state,
                      place(b.add(toValues, column)), live);
      });
    b.store(b.load(decay, {from, ofHead}), state, place(decayAt(chunk, i)));
  });
}

/// Computes the matrix before the chunk from the matrix before the previous chunk and the rows
/// since.
void Scan::closeChunk() {
  Value last = b.sub(chunk, b.idx(1)), hasMatrix = isAbove(last, b.idx(0));
  Value ofMatrix = b.carry(b.idx(0), b.idx(kChunk), 1, b.f32(1), [&](Value step, ValueRange all) {
    Value i = b.sub(b.idx(kChunk - 1), step);
    b.store(all[0], weights, i);
    return SmallVector<Value>{b.mulf(all[0], at(decayAt(last, i)))};
  })[0];
  Value from = matrix(last), to = matrix(chunk);
  // Sums of the keys starting at `key`, the first of which is column `inVector` of the factors.
  auto sum = [&](const Block &block, Value key, Value inVector, int64_t tile) {
    int64_t vectors = block.lives.size();
    SmallVector<Value> sums;
    for (int64_t j = 0; j < tile; ++j)
      for (Value old : loadKey(block, from, b.add(key, j))) {
        // As the first term of a sum that starts at zero.
        Value term = b.fma(b.broadcast(ofMatrix), old, b.splat(0));
        sums.push_back(arith::SelectOp::create(b, hasMatrix, term, b.splat(0)));
      }
    sums = carrySums(tile, b.idx(kChunk), 1, sums, [&](Value i, ValueRange carried) {
      SmallVector<Value> next(carried), own;
      for (int64_t j = 0; j < tile; ++j)
        own.push_back(b.load(factors, {i, b.add(inVector, j)}));
      addProducts(b, own, load(block, valuesAt(last, i)), next);
      return next;
    });
    for (auto [index, total] : llvm::enumerate(sums)) {
      int64_t j = static_cast<int64_t>(index) / vectors, vector = index % vectors;
      b.storeVector(total, state, place(inMatrix(block, to, b.add(key, j), vector)),
                    block.lives[vector]);
    }
  };
  b.eachVector(keys, [&](Value column, Value live) {
    b.loop(kChunk, [&](Value i) {
      Value own = b.loadVector(state, place(b.add(keysAt(last, i), column)), live);
      b.storeVector(b.mulf(b.broadcast(b.load(weights, i)), own), factors, {i, b.idx(0)});
    });
    int64_t all = live ? keys % kLanes : kLanes, whole = all / kTile * kTile;
    eachBlock(vectorsOfTile(b), [&](const Block &block) {
      if (whole)
        b.loop(b.idx(0), b.idx(whole), kTile,
               [&](Value inVector) { sum(block, b.add(column, inVector), inVector, kTile); });
      if (whole != all)
        b.loop(b.idx(whole), b.idx(all), 1,
               [&](Value inVector) { sum(block, b.add(column, inVector), inVector, 1); });
    });
  });
}

/// Computes the products of all rows of the run and the keys of the chunk up to each row. Tiles
/// also multiply keys after their rows, which may not have been written yet; nothing uses the
/// products.
void Scan::multiply(const Rows &of) {
  int64_t tile = b.isWide() ? 4 : 2;
  Value whole = b.mul(b.div(count, tile), tile);
  b.loop(b.idx(0), whole, tile, [&](Value r) {
    b.loop(b.idx(0), b.add(b.add(first, r), tile), tile,
           [&](Value i) { multiply(of, r, i, tile, tile); });
  });
  b.loop(whole, count, 1, [&](Value r) {
    b.loop(b.idx(0), b.add(b.add(first, r), 1), 1, [&](Value i) { multiply(of, r, i, 1, 1); });
  });
}

/// The sum of all lanes. Rows of a tile and single rows need the same order, which is not specified
/// for a reduction.
static Value sumOfLanes(KernelBuilder &b, Value vector) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2) {
    auto part = [&](int64_t from) {
      return vector::ExtractStridedSliceOp::create(b, vector, from, half, /*strides=*/1);
    };
    vector = b.addf(part(0), part(half));
  }
  return vector::ExtractOp::create(b, vector, 0);
}

/// Computes the products of some rows starting at `r` and keys starting at position `i` of the
/// chunk.
void Scan::multiply(const Rows &of, Value r, Value i, int64_t rows, int64_t keysOfTile) {
  auto step = [&](Value column, Value live, ValueRange carried) {
    SmallVector<Value> own, sums(carried);
    for (int64_t m = 0; m < rows; ++m)
      own.push_back(b.loadVector(of.rows, {b.add(b.add(row, r), m), group, column}, live));
    for (int64_t n = 0; n < keysOfTile; ++n) {
      Value key = b.loadVector(state, place(b.add(keysAt(chunk, b.add(i, n)), column)), live);
      for (int64_t m = 0; m < rows; ++m)
        sums[n * rows + m] = b.fma(own[m], key, sums[n * rows + m]);
    }
    return sums;
  };
  SmallVector<Value> sums(rows * keysOfTile, b.splat(0));
  int64_t whole = keys / kLanes * kLanes;
  if (whole)
    sums = carrySums(rows, b.idx(whole), kLanes, sums,
                     [&](Value column, ValueRange carried) { return step(column, {}, carried); });
  if (whole != keys)
    sums = step(b.idx(whole), b.idx(keys - whole), sums);
  for (int64_t n = 0; n < keysOfTile; ++n)
    for (int64_t m = 0; m < rows; ++m)
      b.store(sumOfLanes(b, sums[n * rows + m]), of.products, {b.add(i, n), b.add(r, m)});
}

/// Computes the weights of the matrix for every row of the run, and the scores: the products times
/// the weights of the positions. A lane is a row; what follows a row in the chunk is not used.
void Scan::weigh() {
  b.loop(b.idx(0), count, kLanes, [&](Value r) {
    Value last = arith::MinUIOp::create(b, b.add(r, kLanes), count),
          positionsOf = b.add(first, last);
    Value all = b.carry(b.idx(0), positionsOf, 1, b.splat(1), [&](Value step, ValueRange weights) {
      Value i = b.sub(b.sub(positionsOf, b.idx(1)), step);
      for (const Rows &of : {ofQ, ofK})
        if (of.rows)
          b.storeVector(b.mulf(b.loadVector(of.products, {i, r}), weights[0]), of.scores, {i, r});
      Value areBefore = b.maskOf(b.sub(i, b.add(first, r))); // rows before position i
      Value more = b.mulf(weights[0], b.broadcast(at(decayAt(chunk, i))));
      return SmallVector<Value>{arith::SelectOp::create(b, areBefore, weights[0], more)};
    })[0];
    b.storeVector(all, kept, r);
  });
}

/// The scores of position i of the chunk for rows starting at `r`.
SmallVector<Value> Scan::factorsOf(const Rows &of, Value i, Value r, int64_t rows) {
  SmallVector<Value> factors;
  for (int64_t j = 0; j < rows; ++j)
    factors.push_back(b.load(of.scores, {i, b.add(r, j)}));
  return factors;
}

/// The sums of the matrix and the first `positionsBefore` positions of the chunk for rows of q, k
/// or both starting at `r`, ordered as `all`, then by row.
SmallVector<Value> Scan::read(ArrayRef<Rows> all, const Block &block, Value r, int64_t rows,
                              Value positionsBefore) {
  // There is no matrix before the first chunk; its memory may contain that of an earlier sequence.
  Value before = arith::SelectOp::create(b, isAbove(chunk, b.idx(0)), b.idx(keys), b.idx(0)),
        from = matrix(chunk), firstRow = b.add(row, r);
  SmallVector<Value> sums(all.size() * rows * block.lives.size(), b.splat(0));
  sums = carrySums(rows, before, 1, sums, [&](Value key, ValueRange carried) {
    SmallVector<Value> next(carried), own;
    for (const Rows &of : all)
      for (int64_t j = 0; j < rows; ++j)
        own.push_back(b.loadF32(of.rows, {b.add(firstRow, j), group, key}));
    addProducts(b, own, loadKey(block, from, key), next);
    return next;
  });
  for (auto [index, sum] : llvm::enumerate(sums)) {
    int64_t j = static_cast<int64_t>(index / block.lives.size()) % rows;
    sum = b.mulf(b.broadcast(b.load(kept, b.add(r, j))), sum);
  }
  return carrySums(rows, positionsBefore, 1, sums, [&](Value i, ValueRange carried) {
    SmallVector<Value> next(carried), own;
    for (const Rows &of : all)
      own.append(factorsOf(of, i, r, rows));
    addProducts(b, own, load(block, valuesAt(chunk, i)), next);
    return next;
  });
}

/// Computes the results of the rows of a tile, which starts at `r`, and with the delta rule their
/// values before: beta times the difference between v and the result of the state before the row.
void Scan::compute(const Block &block, Value r, int64_t rows) {
  size_t vectors = block.lives.size();
  Value i = b.add(first, r), firstRow = b.add(row, r);
  // Adds position i + j of the chunk to the sums of rows from `begin` on.
  auto addPosition = [&](const Rows &of, int64_t j, int64_t begin, ArrayRef<Value> numbers,
                         MutableArrayRef<Value> sums) {
    addProducts(b, factorsOf(of, b.add(i, j), b.add(r, begin), rows - begin), numbers,
                sums.drop_front(begin * vectors));
  };
  SmallVector<Value> sums;
  // A single row reads the matrix and the positions before it once for both; tiles would need too
  // many registers.
  bool readsOnce = beta && rows == 1;
  if (beta) {
    SmallVector<Value> before =
        readsOnce ? read({ofK, ofQ}, block, r, rows, i) : read(ofK, block, r, rows, i);
    MutableArrayRef<Value> sumsOfK = MutableArrayRef<Value>(before).take_front(rows * vectors);
    sums.append(before.begin() + rows * vectors, before.end());
    for (int64_t j = 0; j < rows; ++j) {
      Value own = b.add(firstRow, j), share = b.broadcast(b.loadF32(beta, {own, ofHead})),
            to = valuesAt(chunk, b.add(i, j));
      SmallVector<Value> numbers;
      for (auto [index, live] : llvm::enumerate(block.lives)) {
        Value column = block.at(b, b.idx(0), index);
        Value missing =
            b.subf(b.loadVector(v, {own, ofHead, column}, live), sumsOfK[j * vectors + index]);
        numbers.push_back(b.mulf(share, missing));
        b.storeVector(numbers.back(), state, place(b.add(to, column)), live);
      }
      if (j + 1 < rows)
        addPosition(ofK, j, j + 1, numbers, sumsOfK);
      if (readsOnce)
        addPosition(ofQ, j, j, numbers, sums);
    }
  }
  if (!readsOnce)
    sums = read(ofQ, block, r, rows, b.add(i, 1));
  for (int64_t j = 1; j < rows; ++j)
    addPosition(ofQ, j, j, load(block, valuesAt(chunk, b.add(i, j))), sums);
  for (auto [index, sum] : llvm::enumerate(sums)) {
    size_t vector = index % vectors;
    b.storeVector(sum, y,
                  {b.add(firstRow, static_cast<int64_t>(index / vectors)), ofHead,
                   block.at(b, b.idx(0), vector)},
                  block.lives[vector]);
  }
}

/// Computes the run for a head; `firstHead` is the first one that is computed with it.
void Scan::runOf(Value head, Value firstHead) {
  ofHead = head;
  group = b.div(head, headsOfGroup);
  b.when(arith::AndIOp::create(b, b.isEqual(first, b.idx(0)), isAbove(chunk, b.idx(0))),
         [&] { closeChunk(); });
  keep();
  Value isFirst = arith::OrIOp::create(b, b.isEqual(head, firstHead),
                                       b.isEqual(b.rem(head, headsOfGroup), b.idx(0)));
  b.when(isFirst, [&] {
    multiply(ofQ);
    if (beta)
      multiply(ofK);
  });
  weigh();
  Value whole = b.mul(b.div(count, kTile), kTile);
  // For a block of columns, all rows: its part of the matrix remains in the first-level cache.
  eachBlock(vectorsOfTile(b), [&](const Block &block) {
    b.loop(b.idx(0), whole, kTile, [&](Value r) { compute(block, r, kTile); });
  });
  // A single row needs more vectors for as many independent sums; with beta, it has two of each.
  int64_t vectors = (b.isWide() ? 8 : 4) / (beta ? 2 : 1);
  b.loop(whole, count, 1,
         [&](Value r) { eachBlock(vectors, [&](const Block &block) { compute(block, r, 1); }); });
}

void Scan::heads(Value begin, Value end) {
  Value rows = memref::DimOp::create(b, positions, 0);
  b.loop(begin, end, kHeads, [&](Value firstHead) {
    Value last = arith::MinUIOp::create(b, b.add(firstHead, kHeads), end);
    b.whileLoop(b.idx(0), rows, [&](Value from) -> Value {
      row = from;
      sequence = b.loadIndex(sequences, row);
      Value position = b.loadIndex(positions, row);
      chunk = b.div(position, kChunk);
      first = b.rem(position, kChunk);
      count = lengthOfRun();
      b.loop(firstHead, last, 1, [&](Value head) { runOf(head, firstHead); });
      return b.add(row, count);
    });
  });
}

} // namespace

void mica::cpu::emitLinearAttention(KernelBuilder &b, ValueRange args, RecurrentStateType type,
                                    bool hasBeta) {
  Scan(b, args, type, hasBeta).heads(args[0], args[1]);
}
