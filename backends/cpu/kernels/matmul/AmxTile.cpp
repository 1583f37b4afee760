//===- AmxTile.cpp - matmuls with AMX tiles -------------------------------===//
//
// Pairs of bf16 are summed in f32. A tile holds 16 rows of 64 bytes. All 16 rows of x are
// multiplied, however many are live: LLVM configures the tiles once per function, for one shape.
// Rows are copied to the stack first, tile by tile: 16 rows with a stride of a power of two would
// share one set of the cache, rows that are not live are in no buffer, and elements after K must be
// zero.
//
// Work is blocked for an L2 cache of 2 MiB: 256 rows (MC) by 8 panels (NC) by 1 KiB of K (KC),
// whose sums stay there while K continues. All rows of a piece are multiplied by half a panel, two
// tiles of rows by two of columns (MR, NR) at a time: 4 multiplications for 4 loads. A single tile
// of rows, as when sequences are decoded together, has memory for 256 steps of K, and reads most
// panels from end to end: one stream of memory.
//
// A single row uses vectors, which read cached weights faster; its sums have the order of tdpbf16ps
// and the same bits: for 32 values of K, the even and the odd products are summed separately from
// zero, and the sum of both is added (Intel's manual, operation of TDPBF16PS; the instruction
// flushes numbers below 2^-126 to zero, vectors do not).
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/kernels/matmul/AmxTile.h"

#include "backends/cpu/features/InterleavedPages.h"
#include "backends/cpu/kernels/matmul/Tile.h"
#include "backends/cpu/layout/SumOrder.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/AMX/AMXDialect.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Rows of a tile, and the number of tiles that are multiplied together.
constexpr int64_t kRows = RowTiles::kTileRows, kRowTiles = 16;
/// Groups along K of a panel that one tile multiplication takes: a step.
constexpr int64_t kGroups = kTileGroups;
/// The number of steps of all rows that are copied at once; and, with a single tile of rows, which
/// may use all of the memory.
constexpr int64_t kSteps = 16, kRoom = kRowTiles * kSteps;
/// Prefetch distance of the rows that are copied.
constexpr int64_t kRowsAhead = 6;
/// Vectors of 16 columns of a block.
constexpr int64_t kVectors = kBlockColumns / kLanes;

/// The steps of a panel: the parts that one tile multiplication processes.
struct Steps {
  Steps(KernelBuilder &b, const WeightSpec &weight, const PackedPanel &panel)
      : depth(panel.depth), values(kGroups * depth), elements(values * kBlockColumns),
        count(llvm::divideCeil(weight.k, values)), rest(weight.k % values),
        ahead(llvm::divideCeil(rt::interleaved_pages::chunk,
                               elements * b.elementOf(panel.memory).getIntOrFloatBitWidth() / 8)) {}

  int64_t depth;    ///< consecutive values along K in a lane of an instruction
  int64_t values;   ///< along K
  int64_t elements; ///< of the panel
  int64_t count;    ///< along K
  int64_t rest;     ///< values of the last step, 0 if it is complete
  int64_t ahead;    ///< prefetch distance of prefetchAhead in steps
};

/// Sums that are in registers at the same time: `tiles` of 16 rows by `vectors` of 16 columns.
struct SumTiles {
  int64_t tiles, vectors;
  Value sums; ///< their memory
  /// The indices of the sums of tile `t` and vector `v`.
  llvm::function_ref<SmallVector<Value>(int64_t t, int64_t v)> sumsAt;
  /// The operands of a step: rows of tile `t`, and columns of vector `v`.
  llvm::function_ref<Value(Value step, int64_t t)> loadRows;
  llvm::function_ref<Value(Value step, int64_t v)> loadColumns;

  /// Starts from zero, or, with `accumulate`, from the sums in memory.
  void multiply(KernelBuilder &b, Value steps, bool accumulate) const {
    auto type = amx::TileType::get({kRows, kLanes}, b.elementOf(sums));
    SmallVector<Value> carried;
    each([&](int64_t t, int64_t v) {
      if (accumulate)
        carried.push_back(amx::TileLoadOp::create(b, type, sums, sumsAt(t, v)));
      else
        carried.push_back(amx::TileZeroOp::create(b, type));
    });
    carried = b.carry(b.idx(0), steps, 1, carried, [&](Value step, ValueRange inner) {
      SmallVector<Value> rows, next(inner);
      for (int64_t t = 0; t < tiles; ++t)
        rows.push_back(loadRows(step, t));
      for (int64_t v = 0; v < vectors; ++v) {
        Value columns = loadColumns(step, v);
        for (int64_t t = 0; t < tiles; ++t) {
          Value &sum = next[t * vectors + v];
          sum = amx::TileMulFOp::create(b, type, rows[t], columns, sum);
        }
      }
      return next;
    });
    each([&](int64_t t, int64_t v) {
      amx::TileStoreOp::create(b, sums, sumsAt(t, v), carried[t * vectors + v]);
    });
  }

private:
  void each(llvm::function_ref<void(int64_t, int64_t)> body) const {
    for (int64_t t = 0; t < tiles; ++t)
      for (int64_t v = 0; v < vectors; ++v)
        body(t, v);
  }
};

/// Covers `tiles` tiles of rows by `columns` columns, a multiple of 16: two tiles and two vectors
/// at a time, then the remaining rows by four vectors. Calls `body(tile, tiles, column, vectors)`.
void eachSumTiles(KernelBuilder &b, Value tiles, int64_t columns,
                  llvm::function_ref<void(Value, int64_t, Value, int64_t)> body) {
  auto eachColumn = [&](int64_t vectors, llvm::function_ref<void(Value, int64_t)> ofColumn) {
    int64_t step = vectors * kLanes, whole = columns / step * step;
    if (whole == step)
      ofColumn(b.idx(0), vectors);
    else if (whole)
      b.loop(b.idx(0), b.idx(whole), step, [&](Value column) { ofColumn(column, vectors); });
    if (whole != columns)
      ofColumn(b.idx(whole), (columns - whole) / kLanes);
  };
  Value inPairs = b.mul(b.div(tiles, 2), 2);
  eachColumn(2, [&](Value column, int64_t vectors) {
    b.loop(b.idx(0), inPairs, 2, [&](Value tile) { body(tile, 2, column, vectors); });
  });
  b.loop(inPairs, tiles, 1, [&](Value tile) {
    eachColumn(4, [&](Value column, int64_t vectors) { body(tile, 1, column, vectors); });
  });
}

/// Up to 256 rows times the 64 columns of each panel of some blocks. Panels are numbered across
/// blocks.
class Tiles {
public:
  Tiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight, const BlockRun &run)
      : b(b), rows(rows), weight(weight), run(run), first(run.panelsOf(run.first)),
        steps(b, weight, first.front()), perBlock(static_cast<int64_t>(first.size())),
        panelCount(b.mul(run.count, perBlock)) {
    Type element = b.elementOf(first.front().memory);
    tileType = amx::TileType::get({kRows, steps.values}, element);
    x = b.stackBuffer({kRoom, kRows, steps.values}, element);
    sums =
        b.stackBuffer({run.maxCount * perBlock, kRowTiles * kRows, kBlockColumns}, b.getF32Type());
  }

  /// Multiplies rows [from, from + count) by all columns.
  void emit(Value from, Value count, StoreBlockSums store) {
    // The first rows read the panels from memory, others from the cache.
    Value streams = b.isEqual(from, rows.from);
    b.either(
        b.isEqual(count, b.idx(1)), [&] { multiplyRow(from, streams); },
        [&] { multiplyRows(from, count, streams); });
    b.loop(b.idx(0), count, 1, [&](Value row) {
      Value name = rows.nameOf(b.add(from, row));
      b.loop(b.idx(0), run.count, 1, [&](Value block) {
        b.loop(b.idx(0), b.idx(kBlockColumns), kLanes, [&](Value column) {
          store(b.add(run.first, block), name, column, loadSums(block, row, column));
        });
      });
    });
  }

private:
  /// The sums of a row and of 16 columns of each panel of a block.
  SmallVector<Value> loadSums(Value block, Value row, Value column) {
    SmallVector<Value> ofPanels;
    for (int64_t panel = 0; panel < perBlock; ++panel) {
      Value number = b.add(b.mul(block, perBlock), panel);
      ofPanels.push_back(b.loadRaw(sums, {number, row, column}, kLanes));
    }
    return ofPanels;
  }

  /// The offset of panel `number`; panels are contiguous.
  Value offsetOf(Value number) {
    return b.add(first.front().offset, b.mul(number, steps.count * steps.elements));
  }

  /// Calls `body(number, panel)` for all panels, in a loop.
  void eachPanel(llvm::function_ref<void(Value, PackedPanel)> body) {
    PackedPanel panel = first.front();
    b.loop(b.idx(0), panelCount, 1, [&](Value number) {
      panel.offset = offsetOf(number);
      body(number, panel);
    });
  }

  /// A range of steps along K for which all rows are in `x`.
  struct Piece {
    Value from, end;
    Value room; ///< steps of a tile of rows in `x`
  };

  /// Rows [from, from + count).
  void multiplyRows(Value from, Value count, Value streams) {
    Value tiles = b.div(b.add(count, kRows - 1), kRows);
    Value room =
        arith::SelectOp::create(b, b.isEqual(tiles, b.idx(1)), b.idx(kRoom), b.idx(kSteps));
    clearSums(tiles);
    Value end = b.idx(steps.count);
    b.whileLoop(b.idx(0), end, [&](Value at) {
      Value taken = arith::MinSIOp::create(b, b.sub(end, at), room);
      Piece piece{at, b.add(at, taken), room};
      copy(from, count, piece);
      multiplyPiece(tiles, streams, piece);
      return piece.end;
    });
  }

  /// The distance in elements between the end of a piece of panel `number` and the memory that is
  /// read next: the same piece of the next panel, then the next piece of the first one, and at the
  /// end of K the next blocks.
  Value offsetPastEnd(Value number, const PackedPanel &panel, const Piece &piece) {
    Value last = b.isEqual(b.add(number, 1), panelCount);
    Value isSamePanel = arith::AndIOp::create(
        b, last,
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, piece.end, b.idx(steps.count)));
    Value start = arith::SelectOp::create(b, last, b.idx(0), piece.from);
    Value next = b.sub(b.add(offsetOf(b.add(number, 1)), b.mul(start, steps.elements)),
                       b.add(panel.offset, b.mul(piece.end, steps.elements)));
    return arith::SelectOp::create(b, isSamePanel, b.sub(first.front().offset, panel.offset), next);
  }

  /// Prefetches the memory 32 KiB after part `part` of `parts` of step `number` of a piece.
  void prefetch(const PackedPanel &panel, const Piece &piece, Value number, Value jump,
                int64_t part = 0, int64_t parts = 1) {
    Value isLate =
        arith::CmpIOp::create(b, arith::CmpIPredicate::uge, b.add(number, steps.ahead), piece.end);
    Value skipped = arith::SelectOp::create(b, isLate, jump, b.idx(0));
    int64_t count = steps.elements / parts;
    Value offset = b.add(b.mul(number, steps.elements), part * count);
    prefetchAhead(b, panel, b.add(offset, skipped), count);
  }

  void clearSums(Value tiles) {
    b.loop(b.idx(0), panelCount, 1, [&](Value panel) {
      b.loop(b.idx(0), b.mul(tiles, kRows), 1, [&](Value row) {
        for (int64_t v = 0; v < kVectors; ++v)
          vector::StoreOp::create(b, b.splat(0), sums, ValueRange{panel, row, b.idx(v * kLanes)});
      });
    });
  }

  /// The index of a panel, and the distance from the end of a piece of it to the next one.
  struct Place {
    Value number, jump;
  };

  /// Adds the products of a piece to the sums of `tiles` tiles of rows.
  void multiplyPiece(Value tiles, Value streams, const Piece &piece) {
    eachPanel([&](Value number, PackedPanel panel) {
      Place place{number, offsetPastEnd(number, panel, piece)};
      eachSumTiles(b, tiles, kBlockColumns,
                   [&](Value tile, int64_t count, Value column, int64_t vectors) {
                     // The first tile reads the panel from memory.
                     panel.streams = arith::AndIOp::create(
                         b, streams, b.isEqual(arith::OrIOp::create(b, tile, column), b.idx(0)));
                     multiplyBlock({place, tile, column, count, vectors}, piece, panel);
                   });
    });
  }

  void prefetchRow(SmallVector<Value> at, Value number) {
    at.push_back(b.mul(number, steps.values));
    memref::PrefetchOp::create(b, rows.x, at, /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
  }

  /// The offset in `x` of step `number` of tile `tile`.
  Value offsetIn(Value tile, const Piece &piece, Value number) {
    return b.add(arith::MulIOp::create(b, tile, piece.room), b.sub(number, piece.from));
  }

  /// Copies a piece of rows [from, from + rowCount).
  void copy(Value from, Value rowCount, const Piece &piece) {
    Value whole = b.idx(steps.count - (steps.rest ? 1 : 0)), end = piece.end;
    b.loop(b.idx(0), rowCount, 1, [&](Value row) {
      auto indicesOf = [&](Value row) { return rows.indicesOf(rows.nameOf(b.add(from, row))); };
      SmallVector<Value> at = indicesOf(row), ahead;
      // A piece of a row is too short for hardware prefetchers to detect a stream.
      if (b.target.prefetchPages)
        ahead =
            indicesOf(arith::MinSIOp::create(b, b.add(row, kRowsAhead), b.sub(rowCount, b.idx(1))));
      Value tile = b.div(row, kRows), line = b.rem(row, kRows);
      auto store = [&](Value vector, Value number) {
        vector::StoreOp::create(b, vector, x,
                                ValueRange{offsetIn(tile, piece, number), line, b.idx(0)});
      };
      auto copyStep = [&](Value number, int64_t values) {
        SmallVector<Value> source(at);
        source.push_back(b.mul(number, steps.values));
        store(b.loadRaw(rows.x, source, values), number);
      };
      b.loop(piece.from, arith::MinSIOp::create(b, end, whole), 1, [&](Value number) {
        if (!ahead.empty())
          prefetchRow(ahead, number);
        copyStep(number, steps.values);
      });
      if (steps.rest)
        b.when(arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, end, whole), [&] {
          VectorType zeros = b.vec(b.elementOf(x), steps.values);
          store(arith::ConstantOp::create(b, b.getZeroAttr(zeros)), whole);
          copyStep(whole, steps.rest);
        });
    });
  }

  /// Tiles of rows and columns of a panel that are multiplied together.
  struct Block {
    Place place;
    Value tile, column;
    int64_t tiles, vectors;
  };

  void multiplyBlock(const Block &block, const Piece &piece, const PackedPanel &panel) {
    auto sumsAt = [&](int64_t t, int64_t v) -> SmallVector<Value> {
      return {block.place.number, b.mul(b.add(block.tile, t), kRows),
              b.add(block.column, v * kLanes)};
    };
    auto loadRows = [&](Value step, int64_t t) -> Value {
      Value place = offsetIn(b.add(block.tile, t), piece, b.add(piece.from, step));
      return amx::TileLoadOp::create(b, tileType, x, ValueRange{place, b.idx(0), b.idx(0)});
    };
    auto loadColumns = [&](Value step, int64_t v) -> Value {
      Value number = b.add(piece.from, step);
      // Between the tiles: prefetching all lines at once would delay the tile loads.
      prefetch(panel, piece, number, block.place.jump, v, block.vectors);
      Value at = groupAt(panel, b.mul(number, kGroups), b.add(block.column, v * kLanes));
      return amx::TileLoadOp::create(b, tileType, panel.memory, ValueRange{at},
                                     b.idx(steps.depth * kBlockColumns));
    };
    SumTiles{block.tiles, block.vectors, sums, sumsAt, loadRows, loadColumns}.multiply(
        b, b.sub(piece.end, piece.from), /*accumulate=*/true);
  }

  /// The indices of a group of the panel, starting at `column`.
  Value groupAt(const PackedPanel &panel, Value group, Value column) {
    return b.add(b.add(panel.offset, b.mul(group, steps.depth * kBlockColumns)),
                 b.mul(column, steps.depth));
  }

  /// Multiplies a single row.
  void multiplyRow(Value row, Value streams) {
    eachPanel([&](Value place, PackedPanel panel) {
      panel.streams = streams;
      for (auto [v, sum] : llvm::enumerate(rowSums(row, panel)))
        vector::StoreOp::create(
            b, sum, sums, ValueRange{place, b.idx(0), b.idx(static_cast<int64_t>(v) * kLanes)});
    });
  }

  SmallVector<Value> rowSums(Value row, const PackedPanel &panel) {
    ProductTile tile{rows.x,   weight.k, b.idx(weight.k / 2), /*partial=*/false, panel,
                     b.idx(0), kVectors};
    tile.rows.push_back(rows.indicesOf(rows.nameOf(row)));
    tile.asTiles = true;
    return emitProductTile(b, tile);
  }

  KernelBuilder &b;
  const ProductRows &rows;
  const WeightSpec &weight;
  const BlockRun &run;
  SmallVector<PackedPanel> first; ///< of the first block
  Steps steps;
  int64_t perBlock; ///< number of panels
  Value panelCount;
  amx::TileType tileType; ///< of rows and of panels
  Value x, sums;          ///< on the stack
};

} // namespace

void RowTiles::emit(KernelBuilder &b, Value sums, int64_t columns, bool accumulate) const {
  auto type = amx::TileType::get({kTileRows, 2 * kTileGroups}, b.getBF16Type());
  eachSumTiles(b, tiles, columns, [&](Value tile, int64_t count, Value column, int64_t vectors) {
    auto rowOf = [&](int64_t t) { return b.mul(b.add(tile, t), kTileRows); };
    auto sumsAt = [&](int64_t t, int64_t v) -> SmallVector<Value> {
      return {rowOf(t), b.add(column, v * kLanes)};
    };
    auto loadRows = [&](Value step, int64_t t) -> Value {
      return amx::TileLoadOp::create(b, type, x,
                                     ValueRange{rowOf(t), b.mul(step, 2 * kTileGroups)});
    };
    auto loadColumns = [&](Value step, int64_t v) -> Value {
      Value at = b.add(b.mul(b.mul(step, kTileGroups), panel.columns), b.add(column, v * kLanes));
      return amx::TileLoadOp::create(b, type, panel.memory,
                                     ValueRange{b.add(panel.offset, b.mul(at, 2))},
                                     b.idx(2 * panel.columns));
    };
    SumTiles{count, vectors, sums, sumsAt, loadRows, loadColumns}.multiply(b, steps, accumulate);
  });
}

bool mica::cpu::multipliesInTiles(KernelBuilder &b, Value x, const WeightSpec &weight) {
  Type element = b.elementOf(x);
  return b.target.tiles && element.isBF16() && weight.element.isBF16() &&
         tilesSupport(Precision::BF16, weight.k);
}

void mica::cpu::emitSumsInTiles(KernelBuilder &b, const ProductRows &rows, const WeightSpec &weight,
                                const BlockRun &run, StoreBlockSums store) {
  Tiles tiles(b, rows, weight, run);
  constexpr int64_t kTogether = kRowTiles * kRows;
  b.loop(rows.from, rows.to, kTogether, [&](Value first) {
    Value count = arith::MinSIOp::create(b, b.sub(rows.to, first), b.idx(kTogether));
    tiles.emit(first, count, store);
  });
}
