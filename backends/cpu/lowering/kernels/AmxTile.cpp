//===- AmxTile.cpp - products of bf16 in tile registers -----------------------------===//
//
// A tile of rows has 16 of them, however many are live: LLVM configures the registers once per
// function, for one shape. Rows are copied to the stack first, tile by tile: 16 of them a power of
// two apart would share one set of the cache, rows that are not live lie in no buffer, and what is
// behind K must be zero.
//
// Work is blocked for a second-level cache of 2 MiB: 256 rows (MC) by 8 panels (NC) by 512 values
// of K (KC), whose sums wait there while K goes on. All rows of a piece pass half a panel, two
// tiles of rows and two of columns (MR, NR) at a time: 4 products for 4 loads.
//
// A single row takes vectors, which read weights that are in the cache faster; its sums are made in
// the order of tdpbf16ps and have the same bits: for 32 values of K the even and the odd products
// are summed apart, from zero, and both sums' sum is added (Intel's manual, operation of TDPBF16PS;
// the instruction flushes numbers below 2^-126 to zero, which vectors do not).
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/lowering/kernels/Tile.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Rows of a tile, and how many are multiplied together.
constexpr int64_t kRows = 16, kRowTiles = 16;
/// How many values of K one multiplication of tiles takes: 16 pairs.
constexpr int64_t kDepth = 32;
/// How many such steps of the rows are copied at once.
constexpr int64_t kSteps = 16;
/// Prefetch distance of the rows that are copied.
constexpr int64_t kRowsAhead = 6;
/// Steps of a panel that are 32 KiB, the distance of prefetchAhead.
constexpr int64_t kStepsAhead = 8;
/// Vectors of 16 columns of a block.
constexpr int64_t kVectors = kBlockColumns / kLanes;

/// Up to 256 rows times the 64 columns of each panel of some blocks. Panels are numbered through
/// all blocks.
class Tiles {
public:
  Tiles(KernelBuilder &b, const ProductRows &rows, int64_t k, const BlockRun &run)
      : b(b), rows(rows), k(k), steps(llvm::divideCeil(k, kDepth)), run(run),
        perBlock(static_cast<int64_t>(run.panels.size())), panelCount(b.mul(run.count, perBlock)),
        pairs(amx::TileType::get({kRows, kDepth}, b.getBF16Type())),
        sumType(amx::TileType::get({kRows, kLanes}, b.getF32Type())),
        x(b.stackBuffer({kRowTiles, kSteps, kRows, kDepth}, b.getBF16Type())),
        sums(b.stackBuffer({run.most * perBlock, kRowTiles * kRows, kBlockColumns},
                           b.getF32Type())) {}

  /// All columns of rows [first, first + count).
  void emit(Value first, Value count, StoreBlockSums store) {
    // The first rows bring the panels from memory, others find them in the cache.
    Value streams = b.isEqual(first, rows.from);
    b.either(
        b.isEqual(count, b.idx(1)),
        [&] {
          eachPanel([&](Value place, PackedPanel panel) {
            panel.streams = streams;
            multiplyRow(first, panel, place);
          });
        },
        [&] {
          Value tiles = b.div(b.add(count, kRows - 1), kRows);
          clearSums(tiles);
          b.loop(b.idx(0), b.idx(steps), kSteps, [&](Value from) {
            Value together = arith::MinSIOp::create(b, b.sub(b.idx(steps), from), b.idx(kSteps));
            copy(first, count, from, together);
            multiplySteps(tiles, streams, from, together);
          });
        });
    b.loop(b.idx(0), count, 1, [&](Value row) {
      Value name = rows.nameOf(b.add(first, row));
      b.loop(b.idx(0), run.count, 1, [&](Value block) {
        b.loop(b.idx(0), b.idx(kBlockColumns), kLanes, [&](Value column) {
          SmallVector<Value> ofPanels;
          for (int64_t p = 0; p < perBlock; ++p)
            ofPanels.push_back(
                b.loadRaw(sums, {b.add(b.mul(block, perBlock), p), row, column}, kLanes));
          store(block, name, column, ofPanels);
        });
      });
    });
  }

private:
  /// Where panel `number` stands.
  Value offsetOf(Value number) {
    Value offset = b.add(run.panels[0].offset,
                         arith::MulIOp::create(b, b.div(number, perBlock), run.distance));
    if (perBlock == 1)
      return offset;
    Value inside = b.sub(run.panels[1].offset, run.panels[0].offset);
    return b.add(offset, arith::MulIOp::create(b, b.rem(number, perBlock), inside));
  }

  /// Calls `body(number, panel)` for all panels, in a loop.
  void eachPanel(llvm::function_ref<void(Value, PackedPanel)> body) {
    PackedPanel panel = run.panels.front();
    b.loop(b.idx(0), panelCount, 1, [&](Value number) {
      panel.offset = offsetOf(number);
      body(number, panel);
    });
  }

  /// Elements between what follows the steps [from, end) of panel `number` and what is read after
  /// them: these steps of the next panel, then those from `end` on of the first one, and when K is
  /// done the next blocks.
  Value jumpBehind(Value number, const PackedPanel &panel, Value from, Value end) {
    int64_t elements = kDepth * panel.columns;
    Value here = panel.offset, last = b.isEqual(b.add(number, 1), panelCount);
    Value next = b.sub(b.sub(offsetOf(b.add(number, 1)), here),
                       b.mul(arith::SelectOp::create(b, last, end, b.sub(end, from)), elements));
    Value goesOn = arith::AndIOp::create(
        b, last, arith::CmpIOp::create(b, arith::CmpIPredicate::ult, end, b.idx(steps)));
    return arith::SelectOp::create(b, goesOn, b.sub(run.panels[0].offset, here), next);
  }

  void clearSums(Value tiles) {
    b.loop(b.idx(0), panelCount, 1, [&](Value panel) {
      b.loop(b.idx(0), b.mul(tiles, kRows), 1, [&](Value row) {
        for (int64_t v = 0; v < kVectors; ++v)
          vector::StoreOp::create(b, b.splat(0), sums, ValueRange{panel, row, b.idx(v * kLanes)});
      });
    });
  }

  /// Adds the products of `count` steps from number `from` on, which have been copied, to the sums
  /// of `tiles` tiles of rows.
  void multiplySteps(Value tiles, Value streams, Value from, Value count) {
    Value inPairs = b.mul(b.div(tiles, 2), 2);
    eachPanel([&](Value place, PackedPanel panel) {
      Value jump = jumpBehind(place, panel, from, b.add(from, count));
      auto multiply = [&](Value tile, int64_t tilesTogether, Value column, int64_t vectors) {
        // Who comes first finds the panel in memory.
        Value isFirst = b.isEqual(arith::OrIOp::create(b, tile, column), b.idx(0));
        panel.streams = arith::AndIOp::create(b, streams, isFirst);
        multiplyBlock({place, tile, column, jump, tilesTogether, vectors}, from, count, panel);
      };
      b.loop(b.idx(0), b.idx(kBlockColumns), 2 * kLanes, [&](Value column) {
        b.loop(b.idx(0), inPairs, 2, [&](Value tile) { multiply(tile, 2, column, 2); });
      });
      b.loop(inPairs, tiles, 1, [&](Value tile) { multiply(tile, 1, b.idx(0), kVectors); });
    });
  }

  void prefetchStep(SmallVector<Value> at, Value number) {
    at.push_back(b.mul(number, kDepth));
    memref::PrefetchOp::create(b, rows.x, at, /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
  }

  /// Copies `count` steps from number `from` on of rows [first, first + rowCount).
  void copy(Value first, Value rowCount, Value from, Value count) {
    int64_t rest = k % kDepth;
    Value whole = b.idx(k / kDepth), end = b.add(from, count);
    b.loop(b.idx(0), rowCount, 1, [&](Value row) {
      auto indicesOf = [&](Value row) { return rows.indicesOf(rows.nameOf(b.add(first, row))); };
      SmallVector<Value> at = indicesOf(row), ahead;
      // A piece of a row is too short for the hardware to see that it is a stream.
      if (b.target.prefetchPages)
        ahead =
            indicesOf(arith::MinSIOp::create(b, b.add(row, kRowsAhead), b.sub(rowCount, b.idx(1))));
      Value tile = b.div(row, kRows), line = b.rem(row, kRows);
      auto copyStep = [&](Value number, int64_t values) {
        SmallVector<Value> source(at);
        source.push_back(b.mul(number, kDepth));
        vector::StoreOp::create(b, b.loadRaw(rows.x, source, values), x,
                                ValueRange{tile, b.sub(number, from), line, b.idx(0)});
      };
      b.loop(from, arith::MinSIOp::create(b, end, whole), 1, [&](Value number) {
        if (!ahead.empty())
          prefetchStep(ahead, number);
        copyStep(number, kDepth);
      });
      if (rest)
        b.when(arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end, whole), [&] {
          Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(b.vec(b.getBF16Type(), kDepth)));
          vector::StoreOp::create(b, zeros, x,
                                  ValueRange{tile, b.sub(whole, from), line, b.idx(0)});
          copyStep(whole, rest);
        });
    });
  }

  /// Sums that have registers at the same time: `tiles` of rows from number `tile` on, `vectors` of
  /// columns from `column` on of panel `place`; see jumpBehind.
  struct Block {
    Value place, tile, column, jump;
    int64_t tiles, vectors;

    template <typename Function> void each(Function function) const {
      for (int64_t t = 0; t < tiles; ++t)
        for (int64_t v = 0; v < vectors; ++v)
          function(t, v);
    }
  };

  SmallVector<Value> sumsAt(const Block &block, int64_t t, int64_t v) {
    return {block.place, b.mul(b.add(block.tile, t), kRows), b.add(block.column, v * kLanes)};
  }

  void multiplyBlock(const Block &block, Value from, Value count, const PackedPanel &panel) {
    SmallVector<Value> carried;
    block.each([&](int64_t t, int64_t v) {
      carried.push_back(amx::TileLoadOp::create(b, sumType, sums, sumsAt(block, t, v)));
    });
    carried = b.carry(b.idx(0), count, 1, carried, [&](Value step, ValueRange inner) {
      return addTiles(block, step, count, b.add(from, step), panel, inner);
    });
    block.each([&](int64_t t, int64_t v) {
      amx::TileStoreOp::create(b, sums, sumsAt(block, t, v), carried[t * block.vectors + v]);
    });
  }

  /// Adds the products of `step` of `count` that were copied, which is number `number` of all.
  SmallVector<Value> addTiles(const Block &block, Value step, Value count, Value number,
                              const PackedPanel &panel, ValueRange carried) {
    SmallVector<Value> ofRows, next(carried);
    for (int64_t t = 0; t < block.tiles; ++t)
      ofRows.push_back(amx::TileLoadOp::create(
          b, pairs, x, ValueRange{b.add(block.tile, t), step, b.idx(0), b.idx(0)}));
    Value isLate =
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, b.add(step, kStepsAhead), count);
    Value behind = arith::SelectOp::create(b, isLate, block.jump, b.idx(0));
    prefetchAhead(b, panel, b.add(b.mul(number, kDepth * panel.columns), behind),
                  kDepth * panel.columns);
    for (int64_t v = 0; v < block.vectors; ++v) {
      Value at = pairsAt(panel, b.mul(number, kDepth / 2), b.add(block.column, v * kLanes));
      Value weights =
          amx::TileLoadOp::create(b, pairs, panel.memory, ValueRange{at}, b.idx(2 * panel.columns));
      for (int64_t t = 0; t < block.tiles; ++t) {
        Value &sum = next[t * block.vectors + v];
        sum = amx::TileMulFOp::create(b, sumType, ofRows[t], weights, sum);
      }
    }
    return next;
  }

  /// Where the pairs of a group of the panel stand, from `column` on.
  Value pairsAt(const PackedPanel &panel, Value group, Value column) {
    return b.add(b.add(panel.offset, b.mul(group, 2 * panel.columns)), b.mul(column, 2));
  }

  void multiplyRow(Value first, const PackedPanel &panel, Value place) {
    SmallVector<Value> at = rows.indicesOf(rows.nameOf(first));
    auto addStep = [&](Value number, int64_t values, ValueRange carried) {
      SmallVector<Value> products(2 * kVectors, b.splat(0)), next;
      products = b.carry(b.idx(0), b.idx(values / 2), 1, products, [&](Value pair, ValueRange in) {
        return addPairs(at, b.add(b.mul(number, kDepth / 2), pair), panel, in);
      });
      for (int64_t v = 0; v < kVectors; ++v)
        next.push_back(b.addf(carried[v], b.addf(products[2 * v], products[2 * v + 1])));
      return next;
    };
    SmallVector<Value> carried(kVectors, b.splat(0));
    int64_t whole = k / kDepth;
    carried = b.carry(b.idx(0), b.idx(whole), 1, carried, [&](Value number, ValueRange inner) {
      return addStep(number, kDepth, inner);
    });
    if (int64_t rest = k % kDepth)
      carried = addStep(b.idx(whole), rest, carried);
    for (int64_t v = 0; v < kVectors; ++v)
      vector::StoreOp::create(b, carried[v], sums, ValueRange{place, b.idx(0), b.idx(v * kLanes)});
  }

  /// Adds the products of pair `group` of a row: those of the first values and of the second ones
  /// for each vector.
  SmallVector<Value> addPairs(ArrayRef<Value> row, Value group, const PackedPanel &panel,
                              ValueRange carried) {
    SmallVector<Value> at(row), next;
    at.push_back(b.mul(group, 2));
    SmallVector<Value> ofRow = widenPairs(b, broadcastPair(b, b.loadRaw(rows.x, at, 2)));
    prefetchAhead(b, panel, b.mul(group, 2 * panel.columns), 2 * panel.columns);
    for (int64_t v = 0; v < kVectors; ++v) {
      Value pairs = b.loadRaw(panel.memory, pairsAt(panel, group, b.idx(v * kLanes)), 2 * kLanes);
      for (auto [a, w] : llvm::zip_equal(ofRow, widenPairs(b, pairs)))
        next.push_back(b.fma(a, w, carried[next.size()]));
    }
    return next;
  }

  KernelBuilder &b;
  const ProductRows &rows;
  int64_t k, steps;
  const BlockRun &run;
  int64_t perBlock; ///< panels
  Value panelCount;
  amx::TileType pairs, sumType;
  Value x, sums; ///< on the stack
};

} // namespace

bool mica::cpu::multipliesInTiles(KernelBuilder &b, Value x, const WeightSpec &weight) {
  return b.target.bf16Tiles && weight.element.isBF16() && b.elementOf(x).isBF16() &&
         weight.k % 2 == 0;
}

void mica::cpu::emitSumsInTiles(KernelBuilder &b, const ProductRows &rows, int64_t k,
                                const BlockRun &run, StoreBlockSums store) {
  Tiles tiles(b, rows, k, run);
  constexpr int64_t kTogether = kRowTiles * kRows;
  b.loop(rows.from, rows.to, kTogether, [&](Value first) {
    Value count = arith::MinSIOp::create(b, b.sub(rows.to, first), b.idx(kTogether));
    tiles.emit(first, count, store);
  });
}
