//===- BlockSums.cpp - matmuls of rows with blocks of a weight ------------===//

#include "backends/cpu/kernels/matmul/BlockSums.h"

#include "backends/cpu/features/InterleavedPages.h"
#include "backends/cpu/kernels/matmul/AmxTile.h"
#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/ExpandedTiles.h"
#include "backends/cpu/kernels/matmul/LevelPanel.h"
#include "backends/cpu/kernels/matmul/Tile.h"
#include "backends/cpu/layout/LaneDepth.h"
#include "backends/cpu/layout/SumOrder.h"
#include "ir/Mica/Mica.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Takes sums like StoreBlockSums, for one block.
using StoreSums = llvm::function_ref<void(Value name, Value column, ArrayRef<Value>)>;

namespace {
/// Sums of rows with the 64 columns of each panel of a block, using vectors. If a tile holds all
/// rows, it reads the panels from end to end. Otherwise the sums are kept in memory while the rows
/// are multiplied by a step of the panels along K: the first tile reads whole lines of it in order,
/// which suits hardware prefetchers, or two passes of half lines, and the others find it in the
/// first-level cache. To keep memory busy meanwhile, each tile prefetches its share of the next
/// step.
///
/// Rows of floats multiply block-quantized weights that are expanded into floats on the stack, step
/// by step: a step is then a block along K, and more rows share it. The same applies to rows of
/// integers if there is a LevelPanel.
///
/// Sums of floats are added in segments along K, like oneDNN's (sumSegment).
class BlockSums {
public:
  static constexpr int64_t kTogether = 16; ///< rows with sums in memory
  static constexpr int64_t kTogetherExpanded = 64;

  BlockSums(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight, int64_t panels)
      : b(b), rows(rows), weight(weight), expands(weight.blocks() && weight.rowBits == 0),
        together(expands || hasLevels() ? kTogetherExpanded : kTogether),
        memory(b.stackBuffer({panels, together, kBlockColumns}, b.getF32Type())) {
    if (weight.rowBits == 0)
      segment = sumSegment(b.elementOf(rows.x).isBF16() ? Precision::BF16 : Precision::F32,
                           weight.k, b.target);
    if (hasSegments())
      totals = b.stackBuffer({panels, together, kBlockColumns}, b.getF32Type());
    if (expands)
      expanded = b.stackBuffer({expandedSize()}, b.elementOf(rows.x));
    if (hasLevels()) {
      levels.emplace(b, weight, together);
      // A single row takes all columns, so that lines are read in order; several rows share the
      // loaded columns. 32 registers hold both integer and f32 sums. With 16 registers, a vector
      // takes two, so only few columns fit.
      if (b.isWide())
        shapes.assign({TileShape{1, kVectors}, {2, kVectors}, {3, kVectors}});
      else
        shapes.assign({TileShape{1, kVectors}, {2, 2}, {4, 1}, {6, 1}});
      return;
    }
    // Accumulators leave half of the registers for weights and rows. Groups of integers have
    // separate accumulators.
    int64_t accumulators = b.registers() / (weight.rowBits != 0 ? 4 : 2);
    int64_t vectors = std::min(kVectors, accumulators);
    for (int64_t count = 1; count <= accumulators / vectors; count *= 2)
      shapes.push_back({count, vectors});
    // With 16 registers, two rows share the widened bf16 of half of the columns.
    if (!b.isWide() && weight.rowBits == 0 && b.elementOf(rows.x).isBF16())
      shapes.push_back({2, vectors / 2});
  }

  void emit(ArrayRef<PackedPanel> panels, StoreSums store) {
    b.loop(rows.from, rows.to, together, [&](Value first) {
      Value end = arith::MinSIOp::create(b, b.add(first, together), rows.to);
      if (expands)
        emitExpanded(first, end, panels, store);
      else if (hasLevels())
        emitByLevels(first, end, panels, store);
      else
        emitGroup(first, end, shapes, panels, store);
    });
  }

private:
  /// The extents of a tile: rows, and vectors of 16 columns.
  struct TileShape {
    int64_t rows, vectors;
  };
  static constexpr int64_t kVectors = kBlockColumns / kLanes, kStepBytes = 8192;
  /// With fewer rows, steps take less time than memory: prefetching costs more than it saves.
  static constexpr int64_t kMinAhead = 5;
  static constexpr int64_t kLine = rt::interleaved_pages::line;

  /// Whether rows of integers are multiplied by levels that are expanded for several tiles.
  bool hasLevels() const {
    return b.hasWords(weight.rowBits) || (weight.rowBits == 8 && !b.target.int8Dot);
  }

  /// Multiplies rows [first, end) by expanded levels, a few chunks along K at a time. A single row
  /// of 16 bits reads the blocks directly.
  void emitByLevels(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    if (weight.rowBits == 8)
      return emitLevels(first, end, panels, store);
    b.either(
        b.isEqual(b.sub(end, first), b.idx(1)),
        [&] { emitTile(first, shapes.front(), panels, store); },
        [&] { emitLevels(first, end, panels, store); });
  }

  void emitLevels(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    clearSums(first, end, panels);
    int64_t chunks = llvm::divideCeil(weight.k, PackedBlocks::kChunk);
    for (auto [number, panel] : llvm::enumerate(panels))
      b.loop(b.idx(0), b.idx(chunks), LevelPanel::kChunks, [&](Value from) {
        Value to = arith::MinSIOp::create(b, b.add(from, LevelPanel::kChunks), b.idx(chunks));
        levels->expand(panel, from, to);
        levels->sumRows(rows, first, end, from, to);
        emitStep(first, end, panel, number, {from, to, /*partial=*/false}, {});
      });
    storeSums(first, end, panels, store);
  }

  /// Multiplies rows [first, end): in a single tile if it has as many rows and reads whole lines of
  /// the panel, otherwise in steps.
  void emitGroup(Value first, Value end, ArrayRef<TileShape> ofTiles, ArrayRef<PackedPanel> panels,
                 StoreSums store) {
    if (ofTiles.empty() || ofTiles.front().vectors != shapes.front().vectors)
      return emitInSteps(first, end, panels, store);
    b.either(
        b.isEqual(b.sub(end, first), b.idx(ofTiles.front().rows)),
        [&] { emitTile(first, ofTiles.front(), panels, store); },
        [&] { emitGroup(first, end, ofTiles.drop_front(), panels, store); });
  }

  void emitTile(Value first, TileShape shape, ArrayRef<PackedPanel> panels, StoreSums store) {
    auto [count, vectors] = shape;
    Steps steps = stepsOf(panels.front());
    b.loop(b.idx(0), b.idx(kBlockColumns), vectors * kLanes, [&](Value column) {
      // One panel after the other, so that a thread reads one stream.
      SmallVector<Value> sums;
      for (const PackedPanel &panel : panels) {
        ProductTile tile =
            tileOf(first, shape, panel, column, {b.idx(0), b.idx(steps.groups), steps.partial});
        // The first tile reads the panel from memory, others from the cache.
        if (b.target.prefetchPages)
          tile.panel.streams =
              b.isEqual(arith::OrIOp::create(b, b.sub(first, rows.from), column), b.idx(0));
        llvm::append_range(sums, hasSegments() ? emitInSegments(tile, steps.groups)
                                               : emitProductTile(b, tile));
      }
      for (int64_t r = 0; r < count; ++r)
        for (int64_t v = 0; v < vectors; ++v)
          finish(
              b.add(first, r), b.add(column, v * kLanes), panels.size(),
              [&](size_t panel) { return sums[(panel * count + r) * vectors + v]; }, store);
    });
  }

  bool hasSegments() const { return segment != 0 && segment < weight.k; }

  /// Multiplies a tile by all `groups` along K, segment by segment.
  SmallVector<Value> emitInSegments(ProductTile tile, int64_t groups) {
    int64_t step = segment / tile.panel.depth;
    // A value after the last complete group belongs to the last segment.
    int64_t alike = tile.partial ? groups / step * step : groups;
    auto add = [&](Value from, Value to, bool partial, ValueRange totals) {
      tile.from = from;
      tile.groups = to;
      tile.partial = partial;
      return llvm::map_to_vector(llvm::zip_equal(totals, emitProductTile(b, tile)), [&](auto sums) {
        return b.addf(std::get<0>(sums), std::get<1>(sums));
      });
    };
    SmallVector<Value> totals(tile.rows.size() * tile.vectors, b.splat(0));
    totals = b.carry(b.idx(0), b.idx(alike), step, totals, [&](Value from, ValueRange carried) {
      Value to = arith::MinSIOp::create(b, b.add(from, step), b.idx(alike));
      return add(from, to, /*partial=*/false, carried);
    });
    return tile.partial ? add(b.idx(alike), b.idx(groups), /*partial=*/true, totals) : totals;
  }

  /// Ends a segment after `values` values along K: the sums of rows [first, end) for panel `number`
  /// are added to their totals and start over.
  void endSegment(Value values, Value first, Value end, size_t number) {
    if (!hasSegments())
      return;
    b.when(b.isEqual(b.rem(values, segment), b.idx(0)), [&] {
      eachSum(first, end, [&](Value row, Value column) {
        SmallVector<Value> at = place(number, b.sub(row, first), column);
        vector::StoreOp::create(b, sumAt(at), totals, at);
        vector::StoreOp::create(b, b.splat(0), memory, at);
      });
    });
  }

  /// The sum of all segments so far.
  Value sumAt(ValueRange at) {
    return hasSegments() ? b.addf(b.loadRaw(totals, at, kLanes), load(at)) : load(at);
  }

  /// Elements along K of a block; and floats in 64 columns of it.
  int64_t blockElements() const { return weight.blocks()->elements; }
  int64_t expandedSize() const { return blockElements() * kBlockColumns; }

  /// Multiplies rows [first, end) by expanded weights, one block along K after the other.
  void emitExpanded(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    clearSums(first, end, panels);
    int64_t depth = laneDepth(b.elementOf(expanded)), elements = blockElements(),
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
        endSegment(b.mul(b.add(block, 1), elements), first, end, number);
      });
    storeSums(first, end, panels, store);
  }

  void clearSums(Value first, Value end, ArrayRef<PackedPanel> panels) {
    eachSum(first, end, [&](Value row, Value column) {
      for (size_t panel = 0; panel < panels.size(); ++panel)
        for (Value sums : {memory, totals})
          if (sums)
            vector::StoreOp::create(b, b.splat(0), sums, place(panel, b.sub(row, first), column));
    });
  }

  void storeSums(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    eachSum(first, end, [&](Value row, Value column) {
      finish(
          row, column, panels.size(),
          [&](size_t panel) { return sumAt(place(panel, b.sub(row, first), column)); }, store);
    });
  }

  void emitInSteps(Value first, Value end, ArrayRef<PackedPanel> panels, StoreSums store) {
    Steps steps = stepsOf(panels.front());
    clearSums(first, end, panels);
    Value count = b.sub(end, first), groups = b.idx(steps.groups);
    Value enough = arith::CmpIOp::create(b, arith::CmpIPredicate::sge, count, b.idx(kMinAhead));
    LinesAhead ahead{
        arith::SelectOp::create(b, enough, b.idx(steps.each * steps.elements), b.idx(0)),
        arith::DivUIOp::create(b, b.idx(LinesAhead::kParts * steps.elements), count)};
    b.loop(b.idx(0), groups, steps.each, [&](Value from) {
      Value to = arith::MinSIOp::create(b, b.add(from, steps.each), groups);
      emitSteps(first, end, panels, {from, to, /*partial=*/false}, ahead);
      for (size_t number = 0; number < panels.size(); ++number)
        endSegment(b.mul(to, panels.front().depth), first, end, number);
    });
    if (steps.partial)
      emitSteps(first, end, panels, {groups, groups, /*partial=*/true}, {});
    storeSums(first, end, panels, store);
  }

  struct Steps {
    int64_t groups, each;    ///< along K, and per step
    int64_t elements, bytes; ///< in a group of 64 columns
    bool partial;            ///< whether another value follows the groups
  };
  struct Range {
    Value from, to; ///< groups along K
    bool partial;
  };

  Steps stepsOf(const PackedPanel &panel) const {
    int64_t groups = weight.k / panel.depth, elements = kBlockColumns * panel.depth;
    bool partial = weight.k % panel.depth != 0;
    if (panel.blocks) {
      groups = llvm::divideCeil(weight.k, blockElements());
      elements = PackedBlocks(*panel.blocks).blockBytes;
      partial = false;
    }
    int64_t bytes = elements * b.elementOf(panel.memory).getIntOrFloatBitWidth() / 8;
    return {groups, std::max<int64_t>(1, kStepBytes / bytes), elements, bytes, partial};
  }

  /// The lines that a tile of a step, whose rows start at `row` and whose columns at `column`,
  /// prefetches. The step starts at `from`, its rows at `first`. `ahead` contains the distance to
  /// the next step and the share of a row.
  LinesAhead sharedBy(Value row, Value column, TileShape shape, Value first, Value from,
                      const PackedPanel &panel, const LinesAhead &ahead) {
    Steps steps = stepsOf(panel);
    int64_t tilesOfRows = kVectors / shape.vectors;
    Value share = b.div(b.mul(ahead.perGroup, shape.rows), tilesOfRows);
    Value before = b.add(arith::MulIOp::create(b, b.sub(row, first), ahead.perGroup),
                         arith::MulIOp::create(b, b.div(column, shape.vectors * kLanes), share));
    Value begin = b.add(b.add(panel.offset, b.mul(from, steps.elements)), ahead.begin);
    return {b.add(begin, b.div(b.mul(before, steps.each), LinesAhead::kParts)), share,
            llvm::divideCeilSigned(steps.bytes * shape.rows, kLine * kMinAhead * tilesOfRows)};
  }

  SmallVector<Value> place(size_t panel, Value inGroup, Value column) {
    return {b.idx(static_cast<int64_t>(panel)), inGroup, column};
  }

  Value load(ValueRange at) { return b.loadRaw(memory, at, kLanes); }

  ProductTile tileOf(Value row, TileShape shape, const PackedPanel &panel, Value column,
                     const Range &range) {
    ProductTile tile{rows.x, weight.k, range.to, range.partial, panel, column, shape.vectors};
    tile.from = range.from;
    tile.rowBits = weight.rowBits;
    for (int64_t r = 0; r < shape.rows; ++r)
      tile.rows.push_back(rows.indicesOf(rows.nameOf(b.add(row, r))));
    return tile;
  }

  /// The rows of a tile, starting at `first`.
  struct TileRows {
    Value first;
    TileShape shape;
  };

  /// Covers rows [first, end) by tiles.
  void eachTile(Value first, Value end, llvm::function_ref<void(const TileRows &)> body) {
    Value from = first;
    for (const TileShape &shape : llvm::reverse(shapes)) {
      Value to = b.add(from, b.mul(b.div(b.sub(end, from), shape.rows), shape.rows));
      b.loop(from, to, shape.rows, [&](Value row) { body({row, shape}); });
      from = to;
    }
  }

  /// Multiplies rows [first, end) by a step of all panels.
  void emitSteps(Value first, Value end, ArrayRef<PackedPanel> panels, const Range &range,
                 const LinesAhead &ahead) {
    eachTile(first, end, [&](const TileRows &ofTile) {
      for (auto [number, panel] : llvm::enumerate(panels))
        emitTileOfStep(ofTile, first, panel, number, range, ahead);
    });
  }

  /// The same for a step of panel `number`.
  void emitStep(Value first, Value end, const PackedPanel &panel, size_t number, const Range &range,
                const LinesAhead &ahead) {
    eachTile(first, end, [&](const TileRows &ofTile) {
      emitTileOfStep(ofTile, first, panel, number, range, ahead);
    });
  }

  /// Multiplies a tile of rows of a group that starts at `first` by a step of panel `number`.
  void emitTileOfStep(const TileRows &ofTile, Value first, const PackedPanel &panel, size_t number,
                      const Range &range, const LinesAhead &ahead) {
    auto [count, vectors] = ofTile.shape;
    b.loop(b.idx(0), b.idx(kBlockColumns), vectors * kLanes, [&](Value column) {
      ProductTile tile = tileOf(ofTile.first, ofTile.shape, panel, column, range);
      // Other tiles find expanded blocks in the cache.
      if (hasLevels())
        tile.panel.streams = b.isEqual(ofTile.first, first);
      if (ahead.begin)
        tile.ahead = sharedBy(ofTile.first, column, ofTile.shape, first, range.from, panel, ahead);
      SmallVector<SmallVector<Value>> places;
      for (int64_t r = 0; r < count; ++r)
        for (int64_t v = 0; v < vectors; ++v) {
          places.push_back(
              place(number, b.sub(b.add(ofTile.first, r), first), b.add(column, v * kLanes)));
          tile.inits.push_back(load(places.back()));
        }
      SmallVector<Value> sums =
          levels ? levels->emitTile(tile, b.sub(ofTile.first, first)) : emitProductTile(b, tile);
      for (auto [sum, at] : llvm::zip_equal(sums, places))
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
  int64_t together;    ///< rows with sums in memory
  int64_t segment = 0; ///< values along K in a segment; 0: not segmented
  Value memory;        ///< [panels][together][64] of the current segment
  Value totals;        ///< of earlier segments; null if there is one segment
  Value expanded;      ///< a block along K of a panel, as floats
  std::optional<LevelPanel> levels;
  SmallVector<TileShape> shapes; ///< shapes of tiles by number of rows
};
} // namespace

/// Uses vectors, one block after the other.
static void emitByVectors(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                          BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store) {
  BlockSums sums(b, rows, weight, blocks.panels);
  b.loop(blocks.from, blocks.to, 1, [&](Value block) {
    sums.emit(panelsOf(block), [&](Value row, Value column, ArrayRef<Value> ofPanels) {
      store(block, row, column, ofPanels);
    });
  });
}

/// Uses AMX tiles, which multiply all rows by several blocks.
static void emitByTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                        BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store) {
  int64_t maxCount = kPanelsTogether / blocks.panels;
  b.loop(blocks.from, blocks.to, maxCount, [&](Value first) {
    Value count = arith::MinSIOp::create(b, b.sub(blocks.to, first), b.idx(maxCount));
    emitSumsInTiles(b, rows, weight, {first, count, maxCount, panelsOf}, store);
  });
}

void mica::cpu::emitBlockSums(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                              BlockSpan blocks, PanelsOfBlock panelsOf, StoreBlockSums store) {
  if (multipliesInTiles(b, rows.x, weight))
    emitByTiles(b, rows, weight, blocks, panelsOf, store);
  else if (expandsForTiles(b, rows.x, weight))
    emitSumsOfExpandedTiles(b, rows, weight, blocks, panelsOf, store);
  else
    emitByVectors(b, rows, weight, blocks, panelsOf, store);
}
