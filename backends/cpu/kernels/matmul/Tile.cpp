//===- Tile.cpp - the inner loop of all matmuls ---------------------------===//

#include "backends/cpu/kernels/matmul/Tile.h"

#include "backends/cpu/kernels/matmul/BlockTile.h"

#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// The first and the second values of 16 pairs of bf16, as f32.
SmallVector<Value> widenPairs(KernelBuilder &b, Value pairs) {
  Value words = b.bitcast(pairs, b.getI32Type());
  Value low = arith::ShLIOp::create(b, words, b.splatInt(16, b.getI32Type()));
  Value high = arith::AndIOp::create(b, words, b.splatInt(-0x10000, b.getI32Type()));
  return {b.bitcast(low, b.getF32Type()), b.bitcast(high, b.getF32Type())};
}

/// A pair of bf16 in all lanes.
Value broadcastPair(KernelBuilder &b, Value pair) {
  Value word = vector::ExtractOp::create(b, b.bitcast(pair, b.getI32Type()), 0);
  return b.bitcast(b.broadcast(word), b.getBF16Type());
}

/// Multiplies the groups of a tile. There may be several sums [rows][vectors] of each result.
class Step {
public:
  Step(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), depth(tile.panel.depth),
        pairs(depth == 2 && b.elementOf(tile.x).isBF16()),
        dots(pairs && b.target.bf16Dot && !tile.asTiles) {}

  /// Adds the products of a group, of which only the first value is used if it is `partial`. If
  /// there are as many sums of each result as values in a group, each value has its own sum.
  void addGroup(Value group, bool isPartial, MutableArrayRef<Value> sums) {
    SmallVector<SmallVector<Value>> values;
    for (ArrayRef<Value> row : tile.rows)
      values.push_back(loadRow(row, group, isPartial));
    prefetchForGroup(b, tile.panel, tile.ahead, tile.from, group, tile.panel.columns * depth);
    auto each = static_cast<int64_t>(sums.size()) / results();
    for (int64_t v = 0; v < tile.vectors; ++v) {
      SmallVector<Value> columns = loadColumns(group, b.add(tile.firstColumn, v * kLanes));
      for (auto [r, row] : llvm::enumerate(values))
        multiply(row, columns, sums.slice((r * tile.vectors + v) * each, each));
    }
  }

  /// Adds groups [from, to).
  SmallVector<Value> addGroups(Value from, Value to, SmallVector<Value> sums) {
    return b.carry(from, to, 1, sums, [&](Value group, ValueRange carried) {
      SmallVector<Value> next(carried);
      addGroup(group, /*isPartial=*/false, next);
      return next;
    });
  }

  /// Adds all groups in the order of AMX tiles (Intel's manual, operation of TDPBF16PS).
  SmallVector<Value> addInTileOrder(SmallVector<Value> sums) {
    auto addStep = [&](Value from, Value to, ValueRange carried) {
      SmallVector<Value> next,
          apart = addGroups(from, to, SmallVector<Value>(2 * carried.size(), b.splat(0)));
      for (auto [i, sum] : llvm::enumerate(carried))
        next.push_back(b.addf(sum, b.addf(apart[2 * i], apart[2 * i + 1])));
      return next;
    };
    Value whole = b.mul(b.div(tile.groups, kTileGroups), kTileGroups);
    sums = b.carry(b.idx(0), whole, kTileGroups, sums, [&](Value from, ValueRange carried) {
      return addStep(from, b.add(from, kTileGroups), carried);
    });
    Value hasRest = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, whole, tile.groups);
    return b.changeWhen(hasRest, sums, [&] { return addStep(whole, tile.groups, sums); });
  }

private:
  int64_t results() const { return static_cast<int64_t>(tile.rows.size()) * tile.vectors; }

  /// Loads a group of a row of x as vectors that are multiplied by the weights.
  SmallVector<Value> loadRow(ArrayRef<Value> row, Value group, bool partial) {
    SmallVector<Value> at(row);
    if (depth != 2) {
      SmallVector<Value> values;
      at.push_back({});
      for (int64_t i = 0; i < depth; ++i) {
        at.back() = b.add(b.mul(group, depth), i);
        values.push_back(b.broadcast(b.loadF32(tile.x, at)));
      }
      return values;
    }
    at.push_back(b.mul(group, 2));
    if (pairs && !partial) {
      Value pair = broadcastPair(b, b.loadRaw(tile.x, at, 2));
      return dots ? SmallVector<Value>{pair} : widenPairs(b, pair);
    }
    Value first = b.loadF32(tile.x, at), second = b.f32(0);
    if (!partial) {
      at.back() = b.add(at.back(), 1);
      second = b.loadF32(tile.x, at);
    }
    if (!dots)
      return {b.broadcast(first), b.broadcast(second)};
    Value pair =
        vector::FromElementsOp::create(b, b.vec(b.getF32Type(), 2), ValueRange{first, second});
    return {broadcastPair(b, b.fromF32(pair, b.getBF16Type()))};
  }

  /// Loads 16 columns of a group of the panel, in the form that `multiply` takes.
  SmallVector<Value> loadColumns(Value group, Value column) {
    const PackedPanel &panel = tile.panel;
    Value inPanel = b.mul(b.add(b.mul(group, panel.columns), column), depth);
    Value vector = b.loadRaw(panel.memory, b.add(panel.offset, inPanel), kLanes * depth);
    if (depth == 1)
      return {b.toF32(vector)};
    if (b.elementOf(panel.memory).isInteger())
      return llvm::map_to_vector(b.signedBytes(vector),
                                 [&](Value bytes) { return b.toF32(bytes); });
    if (dots)
      return {vector};
    return widenPairs(b, vector);
  }

  /// Adds to a single sum, or to one for each value of the group.
  void multiply(ArrayRef<Value> row, ArrayRef<Value> columns, MutableArrayRef<Value> sums) {
    if (dots)
      sums[0] = x86vector::DotBF16Op::create(b, b.vecF32(), sums[0], row[0], columns[0]);
    else
      for (auto [i, a, w] : llvm::enumerate(row, columns)) {
        Value &sum = sums[i % sums.size()];
        sum = b.fma(a, w, sum);
      }
  }

  KernelBuilder &b;
  const ProductTile &tile;
  int64_t depth;
  bool pairs; ///< whether x contains pairs of bf16
  bool dots;  ///< whether they are multiplied by a dot instruction
};

} // namespace

SmallVector<Value> mica::cpu::emitProductTile(KernelBuilder &b, const ProductTile &given) {
  ProductTile tile = given;
  if (!tile.from)
    tile.from = b.idx(0);
  if (tile.inits.empty())
    tile.inits.assign(tile.rows.size() * tile.vectors, b.splat(0));
  if (tile.panel.blocks)
    return emitBlockTile(b, tile);
  Step step(b, tile);
  if (tile.asTiles)
    return step.addInTileOrder(tile.inits);
  SmallVector<Value> sums = step.addGroups(tile.from, tile.groups, tile.inits);
  if (tile.partial)
    step.addGroup(tile.groups, /*isPartial=*/true, sums);
  return sums;
}
