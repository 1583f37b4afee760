//===- Tile.cpp - the inner loop of all products -----------------------------------===//

#include "backends/cpu/lowering/kernels/Tile.h"

#include "ir/Mica/Mica.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

#include <numeric>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// How the groups of a tile are multiplied. There may be several sums [panels][rows][vectors] of a
/// kind beside each other.
class Step {
public:
  Step(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), depth(tile.panels.front().depth),
        pairs(depth == 2 && b.elementOf(tile.x).isBF16()),
        dots(pairs && b.target.bf16Dot && !tile.asTiles) {}

  /// Adds the products of a group. A `partial` one ends behind its first value. Where there are as
  /// many sums for each result as values in a group, they are summed apart.
  void addGroup(Value group, bool isPartial, MutableArrayRef<Value> sums) {
    SmallVector<SmallVector<Value>> values;
    for (ArrayRef<Value> row : tile.rows)
      values.push_back(loadRow(row, group, isPartial));
    auto each = static_cast<int64_t>(sums.size()) / results();
    for (auto [p, panel] : llvm::enumerate(tile.panels)) {
      int64_t elements = panel.columns * panel.depth;
      prefetchAhead(b, panel, b.mul(group, elements), elements);
      for (int64_t v = 0; v < tile.vectors; ++v) {
        SmallVector<Value> columns = loadColumns(panel, group, b.add(tile.firstColumn, v * kLanes));
        for (auto [r, row] : llvm::enumerate(values))
          multiply(row, columns,
                   sums.slice(((p * values.size() + r) * tile.vectors + v) * each, each));
      }
    }
  }

  /// Groups [from, to).
  SmallVector<Value> addGroups(Value from, Value to, SmallVector<Value> sums) {
    return b.carry(from, to, 1, sums, [&](Value group, ValueRange carried) {
      SmallVector<Value> next(carried);
      addGroup(group, /*isPartial=*/false, next);
      return next;
    });
  }

  /// All groups, as tile registers do it (Intel's manual, operation of TDPBF16PS).
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
  int64_t results() const {
    return static_cast<int64_t>(tile.panels.size() * tile.rows.size()) * tile.vectors;
  }

  /// One group of a row of x as the vectors that multiply the weights.
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

  /// 16 columns of one group of a panel, in the form that `multiply` takes.
  SmallVector<Value> loadColumns(const PackedPanel &panel, Value group, Value column) {
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

  /// Adds to one sum, or to one for each value of the group.
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
  bool pairs; ///< whether x holds pairs of bf16
  bool dots;  ///< whether they are multiplied as such
};

/// A contiguous buffer as one row of memory.
Value flatten(KernelBuilder &b, Value buffer) {
  ReassociationIndices all(cast<MemRefType>(buffer.getType()).getRank());
  std::iota(all.begin(), all.end(), 0);
  return memref::CollapseShapeOp::create(b, buffer, ArrayRef<ReassociationIndices>{all});
}

/// Elements before the part that `leading` selects.
Value offsetOf(KernelBuilder &b, Value buffer, ValueRange leading) {
  auto type = cast<MemRefType>(buffer.getType());
  Value offset = leading[0];
  for (int64_t axis = 1; axis < type.getRank(); ++axis) {
    Value extent = memref::DimOp::create(b, buffer, axis);
    offset = arith::MulIOp::create(b, offset, extent);
    if (axis < static_cast<int64_t>(leading.size()))
      offset = b.add(offset, leading[axis]);
  }
  return offset;
}

} // namespace

SmallVector<Value> mica::cpu::widenPairs(KernelBuilder &b, Value pairs) {
  Value words = b.bitcast(pairs, b.getI32Type());
  Value low = arith::ShLIOp::create(b, words, b.splatInt(16, b.getI32Type()));
  Value high = arith::AndIOp::create(b, words, b.splatInt(-0x10000, b.getI32Type()));
  return {b.bitcast(low, b.getF32Type()), b.bitcast(high, b.getF32Type())};
}

Value mica::cpu::broadcastPair(KernelBuilder &b, Value pair) {
  Value word = vector::ExtractOp::create(b, b.bitcast(pair, b.getI32Type()), 0);
  return b.bitcast(b.broadcast(word), b.getBF16Type());
}

PackedPanel mica::cpu::panelOf(KernelBuilder &b, Value buffer, ValueRange leading) {
  ArrayRef<int64_t> shape = cast<MemRefType>(buffer.getType()).getShape();
  return panelOf(b, buffer, leading, shape[shape.size() - 2], shape.back());
}

PackedPanel mica::cpu::panelOf(KernelBuilder &b, Value buffer, ValueRange leading, int64_t columns,
                               int64_t depth) {
  return {flatten(b, buffer), offsetOf(b, buffer, leading), columns, depth};
}

PackedPanel mica::cpu::weightPanel(KernelBuilder &b, Value buffer, ValueRange leading,
                                   const WeightSpec &weight) {
  if (!isQuantized(weight.element))
    return panelOf(b, buffer, leading);
  QuantizedMatrix matrix(weight.element, weight.n, weight.k);
  Value block = leading.back(), start = b.idx(0);
  if (leading.size() == 2)
    start = b.mul(leading[0], matrix.bytes);
  PackedPanel panel{flatten(b, buffer), b.add(start, b.mul(block, matrix.blockBytes)),
                    kBlockColumns, 4};
  panel.quantized = weight.element;
  if (isa<BlockIntType>(weight.element))
    return panel;
  panel.scales = b.add(b.add(start, matrix.scales), b.mul(block, kBlockColumns * 4));
  panel.sums = b.add(b.add(start, matrix.sums), b.mul(block, kBlockColumns * 4));
  return panel;
}

/// Whether the tile `row` rows and `column` columns behind the first one is that itself: others
/// find the panels in the cache.
static Value isFirst(KernelBuilder &b, Value row, Value column) {
  if (!b.target.prefetchPages)
    return {};
  return b.isEqual(arith::OrIOp::create(b, row, column), b.idx(0));
}

/// A tile over all of K = `k`. Where the panels are quantised, x holds quantised rows.
static ProductTile tileOver(KernelBuilder &b, Value x, int64_t k, SmallVector<PackedPanel> panels,
                            Value firstColumn, int64_t vectors) {
  if (Type quantized = panels.front().quantized) {
    QuantizedMatrix matrix(quantized, kBlockColumns, k);
    Value groups = b.idx(matrix.blockBytes / matrix.groupBytes);
    return {x, k, groups, /*partial=*/false, std::move(panels), firstColumn, vectors};
  }
  int64_t depth = panels.front().depth;
  return {x, k, b.idx(k / depth), k % depth != 0, std::move(panels), firstColumn, vectors};
}

SmallVector<Value> ProductTile::emit(KernelBuilder &b) const {
  if (Type quantized = panels.front().quantized)
    return isa<BlockIntType>(quantized) ? emitBlockTile(b, *this) : emitIntegerTile(b, *this);
  SmallVector<Value> sums(inits);
  if (sums.empty())
    sums.assign(panels.size() * rows.size() * vectors, b.splat(0));
  Step step(b, *this);
  if (asTiles)
    return step.addInTileOrder(std::move(sums));
  sums = step.addGroups(b.idx(0), groups, std::move(sums));
  if (partial)
    step.addGroup(groups, /*isPartial=*/true, sums);
  return sums;
}

Value mica::cpu::broadcastOfRow(KernelBuilder &b, Value x, ArrayRef<Value> leading, Value byte,
                                Type element) {
  SmallVector<Value> at(leading);
  at.push_back(byte);
  return b.broadcastFromBytes(x, at, element);
}

Value mica::cpu::liveColumns(KernelBuilder &b, Value column, int64_t columns) {
  if (columns % kBlockColumns == 0)
    return {};
  return arith::MaxSIOp::create(b, b.sub(b.idx(columns), column), b.idx(0));
}

/// Rows of the largest tile of vectors.
static constexpr int64_t kMostRows = 8;

/// Covers rows [from, to) by tiles of at most `most` rows and calls `body(first row, rows,
/// vectors)` such that rows * vectors * streams accumulators for weights of `element` fit the
/// registers. `body` covers all 64 columns in steps of `vectors`.
static void eachRowTile(KernelBuilder &b, Value from, Value to, int64_t most, int64_t streams,
                        Type element, llvm::function_ref<void(Value, int64_t, int64_t)> body) {
  // Accumulators leave half of the registers for the weights and rows. Groups of int4 and of blocks
  // are summed in accumulators of their own.
  constexpr int64_t kBlockVectors = 4;
  int64_t accumulators = b.target.registers() / (isa<Int4Type, BlockIntType>(element) ? 4 : 2);
  Value first = from;
  for (int64_t rows : {kMostRows, int64_t(4), int64_t(2), int64_t(1)}) {
    if (rows > most || (rows > 1 && rows * streams > accumulators))
      continue;
    int64_t vectors =
        std::min(kBlockVectors, std::max<int64_t>(1, accumulators / (rows * streams)));
    Value whole = b.mul(b.div(b.sub(to, first), rows), rows);
    Value last = b.add(first, whole);
    b.loop(first, last, rows, [&](Value row) { body(row, rows, vectors); });
    first = last;
  }
}

/// Takes sums as StoreBlockSums does, of one block.
using StoreSums = llvm::function_ref<void(Value name, Value column, ArrayRef<Value>)>;

/// Sums of all rows for the 64 columns of each panel, by vectors, at most `most` rows at a time.
static void emitSums(KernelBuilder &b, const ProductRows &rows, int64_t most,
                     const WeightSpec &weight, const SmallVector<PackedPanel> &panels,
                     StoreSums store) {
  auto emitTile = [&](Value first, int64_t count, int64_t vectors, Value column) {
    ProductTile tile = tileOver(b, rows.x, weight.k, panels, column, vectors);
    for (PackedPanel &panel : tile.panels)
      panel.streams = isFirst(b, b.sub(first, rows.from), column);
    SmallVector<Value> names;
    for (int64_t r = 0; r < count; ++r) {
      names.push_back(rows.nameOf(b.add(first, r)));
      tile.rows.push_back(rows.indicesOf(names.back()));
    }
    SmallVector<Value> sums = tile.emit(b);
    for (int64_t v = 0; v < vectors; ++v)
      for (auto [r, name] : llvm::enumerate(names)) {
        SmallVector<Value> ofPanels;
        for (size_t p = 0; p < panels.size(); ++p)
          ofPanels.push_back(sums[(p * names.size() + r) * vectors + v]);
        store(name, b.add(column, v * kLanes), ofPanels);
      }
  };
  eachRowTile(b, rows.from, rows.to, most, static_cast<int64_t>(panels.size()), weight.element,
              [&](Value first, int64_t count, int64_t vectors) {
                b.loop(b.idx(0), b.idx(kBlockColumns), vectors * kLanes,
                       [&](Value column) { emitTile(first, count, vectors, column); });
              });
}

/// By vectors, one block after the other.
static void emitByVectors(KernelBuilder &b, const ProductRows &rows, int64_t most,
                          const WeightSpec &weight, BlockSpan blocks, PanelsOfBlock panelsOf,
                          StoreBlockSums store) {
  b.loop(blocks.from, blocks.to, 1, [&](Value block) {
    emitSums(
        b, rows, most, weight, panelsOf(block),
        [&](Value row, Value column, ArrayRef<Value> sums) { store(block, row, column, sums); });
  });
}

/// By tile registers, which meet all rows with several blocks.
static void emitByTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                        BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store) {
  int64_t most = kPanelsTogether / blocks.panels;
  b.loop(blocks.from, blocks.to, most, [&](Value first) {
    Value count = arith::MinSIOp::create(b, b.sub(blocks.to, first), b.idx(most));
    emitSumsInTiles(b, rows, weight, {first, count, most, panelsOf}, store);
  });
}

void mica::cpu::emitBlockSums(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                              BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store) {
  if (!multipliesInTiles(b, rows.x, weight))
    return emitByVectors(b, rows, kMostRows, weight, blocks, panelsOf, store);
  if (!isQuantized(weight.element))
    return emitByTiles(b, rows, weight, blocks, panelsOf, store);
  Value few = arith::CmpIOp::create(b, arith::CmpIPredicate::ule, b.sub(rows.to, rows.from),
                                    b.idx(b.target.vectorRows));
  b.either(
      few,
      [&] {
        emitByVectors(b, rows, std::min(b.target.vectorRows, kMostRows), weight, blocks, panelsOf,
                      store);
      },
      [&] { emitByTiles(b, rows, weight, blocks, panelsOf, store); });
}
