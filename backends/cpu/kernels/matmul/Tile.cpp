//===- Tile.cpp - the inner loop of all products -----------------------------------===//

#include "backends/cpu/kernels/matmul/BlockReader.h"

#include "backends/cpu/features/PagesInTurn.h"
#include "ir/Mica/Mica.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

#include <numeric>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// How the groups of a tile are multiplied. There may be several sums [rows][vectors] of a kind
/// beside each other.
class Step {
public:
  Step(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), depth(tile.panel.depth),
        pairs(depth == 2 && b.elementOf(tile.x).isBF16()),
        dots(pairs && b.target.bf16Dot && !tile.asTiles) {}

  /// Adds the products of a group. A `partial` one ends behind its first value. Where there are as
  /// many sums for each result as values in a group, they are summed apart.
  void addGroup(Value group, bool isPartial, MutableArrayRef<Value> sums) {
    SmallVector<SmallVector<Value>> values;
    for (ArrayRef<Value> row : tile.rows)
      values.push_back(loadRow(row, group, isPartial));
    prefetchForGroup(b, tile, group, tile.panel.columns * depth);
    auto each = static_cast<int64_t>(sums.size()) / results();
    for (int64_t v = 0; v < tile.vectors; ++v) {
      SmallVector<Value> columns = loadColumns(group, b.add(tile.firstColumn, v * kLanes));
      for (auto [r, row] : llvm::enumerate(values))
        multiply(row, columns, sums.slice((r * tile.vectors + v) * each, each));
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
  int64_t results() const { return static_cast<int64_t>(tile.rows.size()) * tile.vectors; }

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

  /// 16 columns of one group of the panel, in the form that `multiply` takes.
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

Value mica::cpu::flatten(KernelBuilder &b, Value buffer) {
  ReassociationIndices all(cast<MemRefType>(buffer.getType()).getRank());
  std::iota(all.begin(), all.end(), 0);
  return memref::CollapseShapeOp::create(b, buffer, ArrayRef<ReassociationIndices>{all});
}

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
  auto blocks = cast<BlockType>(weight.element);
  Value start = b.idx(0);
  if (leading.size() == 2)
    start = b.mul(leading[0], bytesOfMatrix(blocks, weight.n, weight.k));
  int64_t panelBytes = PackedBlocks(*blocks.getFormat()).bytesOf(weight.k);
  PackedPanel panel{flatten(b, buffer), b.add(start, b.mul(leading.back(), panelBytes)),
                    kBlockColumns, 4};
  panel.quantized = blocks;
  return panel;
}

SmallVector<Value> ProductTile::emit(KernelBuilder &b) const {
  ProductTile tile = *this;
  if (!from)
    tile.from = b.idx(0);
  if (inits.empty())
    tile.inits.assign(rows.size() * vectors, b.splat(0));
  if (panel.quantized)
    return emitBlockTile(b, tile);
  Step step(b, tile);
  if (asTiles)
    return step.addInTileOrder(tile.inits);
  SmallVector<Value> sums = step.addGroups(tile.from, groups, tile.inits);
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

/// Takes sums as StoreBlockSums does, of one block.
using StoreSums = llvm::function_ref<void(Value name, Value column, ArrayRef<Value>)>;

namespace {
/// Sums of rows with the 64 columns of each panel of a block, by vectors. Where a tile holds all
/// rows, it reads the panels from end to end. Else the sums stand in memory while the rows meet a
/// step along K of the panels: the first tile reads whole lines of it, in order, as processors
/// expect it, and the others find it in the first-level cache. Lest memory rests meanwhile, each
/// asks for its share of the next step.
///
/// Weights in blocks that rows of floats multiply are expanded into floats step by step, on the
/// stack: a step is a block along K then, and more rows share it.
class BlockSums {
public:
  static constexpr int64_t kTogether = 16; ///< rows whose sums are in memory
  static constexpr int64_t kTogetherExpanded = 64;

  BlockSums(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight, int64_t panels)
      : b(b), rows(rows), weight(weight),
        expands(isa<BlockType>(weight.element) && weight.limbs == 0),
        together(expands ? kTogetherExpanded : kTogether),
        memory(b.stackBuffer({panels, together, kBlockColumns}, b.getF32Type())) {
    if (expands)
      expanded = b.stackBuffer({expandedSize()}, b.elementOf(rows.x));
    // Accumulators leave half of the registers for the weights and rows. Groups of integers are
    // summed in accumulators of their own.
    int64_t accumulators = b.target.registers() / (weight.limbs != 0 ? 4 : 2);
    vectors = std::min(kVectors, accumulators);
    for (int64_t count = 1; count <= accumulators / vectors; count *= 2)
      tiles.push_back(count);
  }

  void emit(ArrayRef<PackedPanel> panels, StoreSums store) {
    b.loop(rows.from, rows.to, together, [&](Value first) {
      Value end = arith::MinSIOp::create(b, b.add(first, together), rows.to);
      if (expands)
        emitExpanded(first, end, panels, store);
      else
        emitGroup(first, end, tiles, panels, store);
    });
  }

private:
  static constexpr int64_t kVectors = kBlockColumns / kLanes, kStepBytes = 8192;
  /// Fewer rows in steps are over before memory is: asking costs them more than it brings.
  static constexpr int64_t kLeastAhead = 5;
  static constexpr int64_t kLine = rt::pages_in_turn::line;

  /// Rows [first, end): of one of these numbers in a tile, of others in steps.
  void emitGroup(Value first, Value end, ArrayRef<int64_t> counts, ArrayRef<PackedPanel> panels,
                 StoreSums store) {
    if (counts.empty())
      return emitInSteps(first, end, panels, store);
    b.either(
        b.isEqual(b.sub(end, first), b.idx(counts.front())),
        [&] { emitTile(first, counts.front(), panels, store); },
        [&] { emitGroup(first, end, counts.drop_front(), panels, store); });
  }

  void emitTile(Value first, int64_t count, ArrayRef<PackedPanel> panels, StoreSums store) {
    Steps steps = stepsOf(panels.front());
    b.loop(b.idx(0), b.idx(kBlockColumns), vectors * kLanes, [&](Value column) {
      // One panel after the other: a thread reads one stream.
      SmallVector<Value> sums;
      for (const PackedPanel &panel : panels) {
        ProductTile tile =
            tileOf(first, count, panel, column, {b.idx(0), b.idx(steps.groups), steps.partial});
        // Who comes first finds the panel in memory, others in the cache.
        if (b.target.prefetchPages)
          tile.panel.streams =
              b.isEqual(arith::OrIOp::create(b, b.sub(first, rows.from), column), b.idx(0));
        llvm::append_range(sums, tile.emit(b));
      }
      for (int64_t r = 0; r < count; ++r)
        for (int64_t v = 0; v < vectors; ++v)
          finish(
              b.add(first, r), b.add(column, v * kLanes), panels.size(),
              [&](size_t panel) { return sums[(panel * count + r) * vectors + v]; }, store);
    });
  }

  /// Elements along K of a block, and floats of 64 columns of it.
  int64_t blockElements() const { return cast<BlockType>(weight.element).getFormat()->elements; }
  int64_t expandedSize() const { return blockElements() * kBlockColumns; }

  /// Rows [first, end) with weights that are expanded, one block along K after the other.
  void emitExpanded(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    clearSums(first, end, panels);
    int64_t depth = b.elementOf(expanded).isBF16() ? 2 : 1, elements = blockElements(),
            perBlock = elements / depth, groups = weight.k / depth,
            blocks = llvm::divideCeil(weight.k, elements);
    for (auto [number, panel] : llvm::enumerate(panels))
      b.loop(b.idx(0), b.idx(blocks), 1, [&](Value block) {
        expandBlocks(b, panel, weight.k, block, b.add(block, 1), expanded, b.idx(0));
        Value from = b.mul(block, perBlock);
        PackedPanel floats{expanded, b.mul(b.sub(b.idx(0), from), depth * kBlockColumns),
                           kBlockColumns, depth};
        Value to = arith::MinSIOp::create(b, b.add(from, perBlock), b.idx(groups));
        emitStep(first, end, floats, number, {from, to, /*partial=*/false}, {});
        if (weight.k % depth != 0)
          b.when(b.isEqual(block, b.idx(blocks - 1)), [&] {
            emitStep(first, end, floats, number, {b.idx(groups), b.idx(groups), /*partial=*/true},
                     {});
          });
      });
    storeSums(first, end, panels, store);
  }

  void clearSums(Value first, Value end, ArrayRef<PackedPanel> panels) {
    eachSum(first, end, [&](Value row, Value column) {
      for (size_t panel = 0; panel < panels.size(); ++panel)
        vector::StoreOp::create(b, b.splat(0), memory, place(panel, b.sub(row, first), column));
    });
  }

  void storeSums(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    eachSum(first, end, [&](Value row, Value column) {
      finish(
          row, column, panels.size(),
          [&](size_t panel) { return load(place(panel, b.sub(row, first), column)); }, store);
    });
  }

  void emitInSteps(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    Steps steps = stepsOf(panels.front());
    clearSums(first, end, panels);
    Value count = b.sub(end, first), groups = b.idx(steps.groups);
    Value enough = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, count, b.idx(kLeastAhead));
    LinesAhead ahead{
        arith::SelectOp::create(b, enough, b.idx(steps.each * steps.elements), b.idx(0)),
        arith::DivUIOp::create(b, b.idx(LinesAhead::kParts * steps.elements), count)};
    b.loop(b.idx(0), groups, steps.each, [&](Value from) {
      Value to = arith::MinSIOp::create(b, b.add(from, steps.each), groups);
      emitSteps(first, end, panels, {from, to, /*partial=*/false}, ahead);
    });
    if (steps.partial)
      emitSteps(first, end, panels, {groups, groups, /*partial=*/true}, {});
    storeSums(first, end, panels, store);
  }

  struct Steps {
    int64_t groups, each;    ///< along K, and of a step
    int64_t elements, bytes; ///< of a group of 64 columns
    bool partial;            ///< whether one more value follows them
  };
  struct Range {
    Value from, to; ///< groups along K
    bool partial;
  };

  Steps stepsOf(const PackedPanel &panel) const {
    int64_t groups = weight.k / panel.depth, elements = kBlockColumns * panel.depth;
    bool partial = weight.k % panel.depth != 0;
    if (panel.quantized) {
      groups = llvm::divideCeil(weight.k, blockElements());
      elements = PackedBlocks(*cast<BlockType>(panel.quantized).getFormat()).blockBytes;
      partial = false;
    }
    int64_t bytes = elements * b.elementOf(panel.memory).getIntOrFloatBitWidth() / 8;
    return {groups, std::max<int64_t>(1, kStepBytes / bytes), elements, bytes, partial};
  }

  /// What a tile of `count` rows from `row` on asks for in the step from `from` on, with all rows
  /// from `first` on. `ahead` says how far the next step is and what a row asks for.
  LinesAhead sharedBy(Value row, int64_t count, Value first, Value from, const PackedPanel &panel,
                      const LinesAhead &ahead) {
    Steps steps = stepsOf(panel);
    Value before = arith::MulIOp::create(b, b.mul(b.sub(row, first), steps.each), ahead.perGroup);
    Value begin = b.add(b.add(panel.offset, b.mul(from, steps.elements)), ahead.begin);
    return {b.add(begin, b.div(before, LinesAhead::kParts)), b.mul(ahead.perGroup, count),
            llvm::divideCeilSigned(steps.bytes * count, kLine * kLeastAhead)};
  }

  SmallVector<Value> place(size_t panel, Value inGroup, Value column) {
    return {b.idx(static_cast<int64_t>(panel)), inGroup, column};
  }

  Value load(ValueRange at) { return b.loadRaw(memory, at, kLanes); }

  ProductTile tileOf(Value row, int64_t count, const PackedPanel &panel, Value column,
                     const Range &range) {
    ProductTile tile{rows.x, weight.k, range.to, range.partial, panel, column, vectors};
    tile.from = range.from;
    tile.limbs = weight.limbs;
    for (int64_t r = 0; r < count; ++r)
      tile.rows.push_back(rows.indicesOf(rows.nameOf(b.add(row, r))));
    return tile;
  }

  /// Covers rows [first, end) by the tiles.
  void eachTile(Value first, Value end, llvm::function_ref<void(Value, int64_t)> body) {
    Value from = first;
    for (int64_t count : llvm::reverse(tiles)) {
      Value to = b.add(from, b.mul(b.div(b.sub(end, from), count), count));
      b.loop(from, to, count, [&](Value row) { body(row, count); });
      from = to;
    }
  }

  /// Rows [first, end) with a step of all panels.
  void emitSteps(Value first, Value end, ArrayRef<PackedPanel> panels, const Range &range,
                 const LinesAhead &ahead) {
    eachTile(first, end, [&](Value row, int64_t count) {
      for (auto [number, panel] : llvm::enumerate(panels))
        emitTileOfStep({row, count}, first, panel, number, range, ahead);
    });
  }

  /// The same with a step of panel `number`.
  void emitStep(Value first, Value end, const PackedPanel &panel, size_t number, const Range &range,
                const LinesAhead &ahead) {
    eachTile(first, end, [&](Value row, int64_t count) {
      emitTileOfStep({row, count}, first, panel, number, range, ahead);
    });
  }

  /// `count` rows from `first` on.
  struct TileRows {
    Value first;
    int64_t count;
  };

  /// A tile of rows of a group that begins at `first`, with a step of panel `number`.
  void emitTileOfStep(TileRows ofTile, Value first, const PackedPanel &panel, size_t number,
                      const Range &range, const LinesAhead &ahead) {
    b.loop(b.idx(0), b.idx(kBlockColumns), vectors * kLanes, [&](Value column) {
      ProductTile tile = tileOf(ofTile.first, ofTile.count, panel, column, range);
      if (ahead.begin)
        tile.ahead = sharedBy(ofTile.first, ofTile.count, first, range.from, panel, ahead);
      SmallVector<SmallVector<Value>> places;
      for (int64_t r = 0; r < ofTile.count; ++r)
        for (int64_t v = 0; v < vectors; ++v) {
          places.push_back(
              place(number, b.sub(b.add(ofTile.first, r), first), b.add(column, v * kLanes)));
          tile.inits.push_back(load(places.back()));
        }
      for (auto [sum, at] : llvm::zip_equal(tile.emit(b), places))
        vector::StoreOp::create(b, sum, memory, at);
    });
  }

  /// Stores the sums of a row and 16 columns of all panels.
  void finish(Value row, Value column, size_t panels, llvm::function_ref<Value(size_t)> sumOf,
              StoreSums store) {
    Value name = rows.nameOf(row);
    SmallVector<Value> ofPanels;
    for (size_t panel = 0; panel < panels; ++panel)
      ofPanels.push_back(sumOf(panel));
    store(name, column, ofPanels);
  }

  /// Calls `body(row, column)` for the vectors of sums of rows [first, end).
  void eachSum(Value first, Value end, llvm::function_ref<void(Value, Value)> body) {
    b.loop(first, end, 1, [&](Value row) {
      for (int64_t v = 0; v < kVectors; ++v)
        body(row, b.idx(v * kLanes));
    });
  }

  KernelBuilder &b;
  const ProductRows &rows;
  const WeightSpec &weight;
  bool expands;
  int64_t together;           ///< rows whose sums are in memory
  Value memory;               ///< [panels][together][64]
  Value expanded;             ///< a block along K of a panel as floats
  int64_t vectors;            ///< of 16 columns, of a tile
  SmallVector<int64_t> tiles; ///< their rows, the smallest first
};
} // namespace

/// By vectors, one block after the other.
static void emitByVectors(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                          BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store) {
  BlockSums sums(b, rows, weight, blocks.panels);
  b.loop(blocks.from, blocks.to, 1, [&](Value block) {
    sums.emit(panelsOf(block), [&](Value row, Value column, ArrayRef<Value> ofPanels) {
      store(block, row, column, ofPanels);
    });
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
  if (multipliesInTiles(b, rows.x, weight))
    emitByTiles(b, rows, weight, blocks, panelsOf, store);
  else
    emitByVectors(b, rows, weight, blocks, panelsOf, store);
}
