//===- AmxTile.cpp - products of bf16 in tile registers -----------------------------===//
//
// Tiles have 16 rows, however many of them are live: LLVM configures the registers once per
// function, for one shape each. Rows are copied to the stack first: 16 of them a power of two apart
// would share one set of the cache, and rows that are not live lie in no buffer.
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

constexpr int64_t kRows = 16;
/// How many values of K one multiplication of tiles takes: 16 pairs.
constexpr int64_t kDepth = 32;
/// How many such steps of the rows are copied at once: 16 KiB.
constexpr int64_t kSteps = 16;
/// Vectors of 16 columns of a block: each has a tile register for its sums. Of the other four LLVM
/// needs one or two per shape.
constexpr int64_t kVectors = kBlockColumns / kLanes;

/// Up to 16 rows times the 64 columns of each panel.
class Tiles {
public:
  Tiles(KernelBuilder &b, const ProductRows &rows, int64_t k, ArrayRef<PackedPanel> panels)
      : b(b), rows(rows), k(k), panels(panels),
        sumType(amx::TileType::get({kRows, kLanes}, b.getF32Type())),
        x(b.stackBuffer({kSteps, kRows, kDepth}, b.getBF16Type())),
        sums(b.stackBuffer({static_cast<int64_t>(panels.size()) * kVectors, kRows, kLanes},
                           b.getF32Type())) {}

  /// All columns of rows [first, first + count).
  void emit(Value first, Value count, StoreSums store) {
    // The first rows bring the panels from memory, others find them in the cache.
    Value streams = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, first, rows.from);
    for (auto [number, packed] : llvm::enumerate(panels)) {
      PackedPanel panel = packed;
      panel.streams = streams;
      int64_t place = static_cast<int64_t>(number) * kVectors;
      Value single = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, count, b.idx(1));
      b.either(
          single, [&] { multiplyRow(first, panel, place); },
          [&] { multiplyTiles(first, count, panel, place); });
    }
    b.loop(b.idx(0), count, 1, [&](Value row) {
      Value name = rows.nameOf(arith::AddIOp::create(b, first, row));
      for (int64_t v = 0; v < kVectors; ++v) {
        SmallVector<Value> ofPanels;
        for (size_t p = 0; p < panels.size(); ++p)
          ofPanels.push_back(b.loadRaw(
              sums, {b.idx(static_cast<int64_t>(p) * kVectors + v), row, b.idx(0)}, kLanes));
        store(name, b.idx(v * kLanes), ofPanels);
      }
    });
  }

private:
  void multiplyTiles(Value first, Value count, const PackedPanel &panel, int64_t place) {
    SmallVector<Value> carried;
    for (int64_t v = 0; v < kVectors; ++v)
      carried.push_back(amx::TileZeroOp::create(b, sumType));
    int64_t whole = k / kDepth;
    carried = b.carry(b.idx(0), b.idx(whole), kSteps, carried, [&](Value from, ValueRange inits) {
      Value steps = arith::MinSIOp::create(b, b.sub(b.idx(whole), from), b.idx(kSteps));
      copy(first, count, from, steps, kDepth);
      return b.carry(b.idx(0), steps, 1, inits, [&](Value step, ValueRange inner) {
        return addTiles(step, b.add(from, step), panel, kDepth, inner);
      });
    });
    if (int64_t rest = k % kDepth) {
      copy(first, count, b.idx(whole), b.idx(1), rest);
      carried = addTiles(b.idx(0), b.idx(whole), panel, rest, carried);
    }
    for (auto [v, sum] : llvm::enumerate(carried))
      amx::TileStoreOp::create(
          b, sums, ValueRange{b.idx(place + static_cast<int64_t>(v)), b.idx(0), b.idx(0)}, sum);
  }

  /// Copies `values` values of each row per step.
  void copy(Value first, Value count, Value from, Value steps, int64_t values) {
    b.loop(b.idx(0), count, 1, [&](Value row) {
      SmallVector<Value> at = rows.indicesOf(rows.nameOf(arith::AddIOp::create(b, first, row)));
      b.loop(b.idx(0), steps, 1, [&](Value step) {
        SmallVector<Value> source(at);
        source.push_back(b.mul(b.add(from, step), kDepth));
        vector::StoreOp::create(b, b.loadRaw(rows.x, source, values), x,
                                ValueRange{step, row, b.idx(0)});
      });
    });
  }

  /// Adds the products of the copied `step`, which is number `number` of all.
  SmallVector<Value> addTiles(Value step, Value number, const PackedPanel &panel, int64_t values,
                              ValueRange carried) {
    Type bf16 = b.getBF16Type();
    auto rowType = amx::TileType::get({kRows, values}, bf16),
         weightType = amx::TileType::get({values / 2, 2 * kLanes}, bf16);
    Value ofRows = amx::TileLoadOp::create(b, rowType, x, ValueRange{step, b.idx(0), b.idx(0)});
    SmallVector<Value> next;
    prefetchAhead(b, panel, b.mul(number, kDepth * panel.columns), values * panel.columns);
    for (int64_t v = 0; v < kVectors; ++v) {
      Value start = pairsAt(panel, b.mul(number, kDepth / 2), v);
      Value weights = amx::TileLoadOp::create(b, weightType, panel.memory, ValueRange{start},
                                              b.idx(2 * panel.columns));
      next.push_back(amx::TileMulFOp::create(b, sumType, ofRows, weights, carried[v]));
    }
    return next;
  }

  /// Where the pairs of vector `v` of a group of the panel stand.
  Value pairsAt(const PackedPanel &panel, Value group, int64_t v) {
    return b.add(b.add(panel.offset, b.mul(group, 2 * panel.columns)), 2 * v * kLanes);
  }

  void multiplyRow(Value first, const PackedPanel &panel, int64_t place) {
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
      vector::StoreOp::create(b, carried[v], sums,
                              ValueRange{b.idx(place + v), b.idx(0), b.idx(0)});
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
      Value pairs = b.loadRaw(panel.memory, pairsAt(panel, group, v), 2 * kLanes);
      for (auto [a, w] : llvm::zip_equal(ofRow, widenPairs(b, pairs)))
        next.push_back(b.fma(a, w, carried[next.size()]));
    }
    return next;
  }

  KernelBuilder &b;
  const ProductRows &rows;
  int64_t k;
  ArrayRef<PackedPanel> panels;
  amx::TileType sumType;
  Value x, sums; ///< on the stack
};

} // namespace

bool mica::cpu::multipliesInTiles(KernelBuilder &b, Value x, const WeightSpec &weight) {
  return b.target.bf16Tiles && weight.element.isBF16() && b.elementOf(x).isBF16() &&
         weight.k % 2 == 0;
}

void mica::cpu::emitSumsInTiles(KernelBuilder &b, const ProductRows &rows, int64_t k,
                                ArrayRef<PackedPanel> panels, StoreSums store) {
  Tiles tiles(b, rows, k, panels);
  b.loop(rows.from, rows.to, kRows, [&](Value first) {
    Value count = arith::MinSIOp::create(b, b.sub(rows.to, first), b.idx(kRows));
    tiles.emit(first, count, store);
  });
}
