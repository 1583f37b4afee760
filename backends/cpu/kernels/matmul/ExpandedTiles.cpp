//===- ExpandedTiles.cpp - expanded blocks in AMX tiles -------------------===//

#include "backends/cpu/kernels/matmul/ExpandedTiles.h"

#include "backends/cpu/kernels/matmul/AmxTile.h"
#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/ProductTile.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Multiplies up to 64 rows by the 64 columns of each panel of a block of columns. Rows are copied
/// to contiguous memory first: a tile reads 16 rows, live or not, and elements after K must be
/// zero.
class ExpandedTiles {
public:
  ExpandedTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight, int64_t panels)
      : b(b), rows(rows), weight(weight), elements(weight.blocks()->elements) {
    Type bf16 = b.getBF16Type();
    x = b.stackBuffer({kTogether, elements}, bf16);
    expanded = b.stackBuffer({elements * kBlockColumns}, bf16);
    for (int64_t panel = 0; panel < panels; ++panel)
      sums.push_back(b.stackBuffer({kTogether, kBlockColumns}, b.getF32Type()));
  }

  void emit(Value block, ArrayRef<PackedPanel> panels, StoreBlockSums store) {
    b.loop(rows.from, rows.to, kTogether, [&](Value first) {
      Value count = arith::MinSIOp::create(b, b.sub(rows.to, first), b.idx(kTogether));
      multiply(first, count, panels);
      b.loop(b.idx(0), count, 1, [&](Value row) {
        Value name = rows.nameOf(b.add(first, row));
        for (int64_t column = 0; column < kBlockColumns; column += kLanes)
          store(block, name, b.idx(column), llvm::map_to_vector(sums, [&](Value ofPanel) {
                  return b.loadRaw(ofPanel, {row, b.idx(column)}, kLanes);
                }));
      });
    });
  }

private:
  static constexpr int64_t kTogether = 64, kTileRows = RowTiles::kTileRows;
  static constexpr int64_t kDepth = 2; ///< consecutive values along K in a pair
  /// Values along K of one tile multiplication.
  static constexpr int64_t kStep = kDepth * kTileGroups;
  static_assert(kStep % PackedBlocks::kChunk == 0 || PackedBlocks::kChunk % kStep == 0);

  /// Multiplies rows [first, first + count) along all of K.
  void multiply(Value first, Value count, ArrayRef<PackedPanel> panels) {
    Value tiles = b.div(b.add(count, kTileRows - 1), kTileRows);
    clear(tiles);
    int64_t whole = weight.k / elements, rest = weight.k % elements;
    b.loop(b.idx(0), b.idx(whole), 1,
           [&](Value block) { addBlock(first, count, tiles, panels, block, elements); });
    if (rest != 0)
      addBlock(first, count, tiles, panels, b.idx(whole), rest);
  }

  /// Adds block `block` along K, in which the rows have `live` values.
  void addBlock(Value first, Value count, Value tiles, ArrayRef<PackedPanel> panels, Value block,
                int64_t live) {
    int64_t steps = llvm::divideCeil(live, kStep);
    copyRows(first, count, b.mul(block, elements), live);
    for (auto [panel, ofPanel] : llvm::zip_equal(panels, sums)) {
      if (live % kStep != 0)
        clearExpanded(steps);
      expandBlocks(b, panel, weight.k, block, b.add(block, 1), expanded, b.idx(0));
      PackedPanel pairs{expanded, b.idx(0), kBlockColumns, kDepth};
      RowTiles{x, tiles, b.idx(steps), pairs}.emit(b, ofPanel, kBlockColumns, /*accumulate=*/true);
    }
  }

  /// x[row, 0 .. live) = the rows starting at `at` along K, padded with zeros to a whole step.
  void copyRows(Value first, Value count, Value at, int64_t live) {
    b.loop(b.idx(0), count, 1, [&](Value row) {
      SmallVector<Value> source = rows.indicesOf(rows.nameOf(b.add(first, row)));
      source.push_back({});
      auto copy = [&](Value column, int64_t values) {
        source.back() = b.add(at, column);
        vector::StoreOp::create(b, b.loadRaw(rows.x, source, values), x, ValueRange{row, column});
      };
      int64_t whole = live / kStep * kStep;
      if (whole)
        b.loop(b.idx(0), b.idx(whole), kStep, [&](Value column) { copy(column, kStep); });
      if (whole == live)
        return;
      Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(b.vec(b.getBF16Type(), kStep)));
      vector::StoreOp::create(b, zeros, x, ValueRange{row, b.idx(whole)});
      copy(b.idx(whole), live - whole);
    });
  }

  void clear(Value tiles) {
    b.loop(b.idx(0), b.mul(tiles, kTileRows), 1, [&](Value row) {
      for (Value ofPanel : sums)
        for (int64_t column = 0; column < kBlockColumns; column += kLanes)
          vector::StoreOp::create(b, b.splat(0), ofPanel, ValueRange{row, b.idx(column)});
    });
  }

  /// Clears the last of `steps` steps, whose end expandBlocks does not write: elements after K must
  /// not be NaN or infinite.
  void clearExpanded(int64_t steps) {
    Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(b.vec(b.getBF16Type(), kStep)));
    int64_t end = steps * kStep * kBlockColumns;
    b.loop(b.idx(end - kStep * kBlockColumns), b.idx(end), kStep,
           [&](Value at) { vector::StoreOp::create(b, zeros, expanded, ValueRange{at}); });
  }

  KernelBuilder &b;
  const ProductRows &rows;
  const WeightSpec &weight;
  int64_t elements;        ///< along K of a block
  Value x;                 ///< bf16 [64][elements]: rows of a block
  Value expanded;          ///< bf16 [elements / 2][64][2]: a block of a panel
  SmallVector<Value> sums; ///< f32 [64][64] of each panel
};

} // namespace

bool mica::cpu::expandsForTiles(KernelBuilder &b, Value x, const WeightSpec &weight) {
  return b.target.tiles && b.elementOf(x).isBF16() && weight.blocks() && weight.rowBits == 0;
}

void mica::cpu::emitSumsOfExpandedTiles(KernelBuilder &b, const ProductRows &rows,
                                        const WeightSpec &weight, BlockSpan blocks,
                                        PanelsOfBlock panelsOf, StoreBlockSums store) {
  ExpandedTiles tiles(b, rows, weight, blocks.panels);
  b.loop(blocks.from, blocks.to, 1,
         [&](Value block) { tiles.emit(block, panelsOf(block), store); });
}
