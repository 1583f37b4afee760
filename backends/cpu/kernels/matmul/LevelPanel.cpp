//===- LevelPanel.cpp - blocks expanded for integer matmuls ---------------===//
//
// Rows of 16 bits are words, and levels are converted to words: vpmaddwd, vpdpwssd. Rows of 8 bits
// are bytes; they are handled here if there is no vpdpbusd.
// Levels with few bits are multiplied directly (vpmaddubsw), and the results of several quads are
// summed in words before they are added to a sum. For 8-bit levels, two products would not fit in a
// word: instead, the magnitudes of the levels, up to 128, are multiplied by the row with the signs
// of the levels applied, up to 127.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/kernels/matmul/LevelPanel.h"

#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/IntegerRows.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

static constexpr int64_t kChunk = PackedBlocks::kChunk, kQuads = PackedBlocks::kQuads,
                         kColumns = PackedBlocks::kColumns;

/// The number of bits in a byte returned by BlockReader::loadQuad().
static int64_t bitsOfLevel(const BlockFormat &format) {
  return format.levels ? 8 : format.codeBits();
}

LevelPanel::LevelPanel(KernelBuilder &b, const WeightSpec &weight, int64_t maxRows)
    : b(b), format(*weight.blocks()), rowBits(weight.rowBits), k(weight.k),
      groups(std::max<int64_t>(PackedBlocks(format).groups, 1)) {
  int64_t size = kChunks * kChunk * kColumns;
  levels = b.stackBuffer({size}, hasWords() ? b.getI16Type() : b.getI8Type());
  steps = b.stackBuffer({kChunks * groups * kColumns}, b.getF32Type());
  if (!format.hasOffsets())
    return;
  offsets = b.stackBuffer({kChunks * groups * kColumns}, b.getF32Type());
  totals = b.stackBuffer({maxRows, kChunks, groups}, b.getF32Type());
}

int64_t LevelPanel::lanesPerChunk() const { return hasWords() ? 2 * kQuads : kQuads; }

/// The largest magnitude in a row of 8 bits.
static constexpr auto kLargestByte = static_cast<int64_t>(IntegerRowLayout::limitOf(8));

LevelPanel::ByteSums LevelPanel::byteSums() const {
  // A lane of words sums two products of each quad.
  static_assert(2 * 128 * kLargestByte <= INT16_MAX, "magnitudes of 8 bits times a row");
  if (bitsOfLevel(format) == 8)
    return ByteSums::Signed;
  int64_t largestLevel = (int64_t(1) << bitsOfLevel(format)) - 1,
          exactQuads = INT16_MAX / (2 * largestLevel * kLargestByte);
  assert(exactQuads >= 2 && "no format has codes of 7 bits");
  return exactQuads >= lanesOfGroup() ? ByteSums::WholeGroup : ByteSums::Pairs;
}

Value LevelPanel::offsetOfGroup(Value inPanel, int64_t group, Value column) const {
  return b.add(b.add(b.mul(inPanel, groups * kColumns), group * kColumns), column);
}

void LevelPanel::expand(const PackedPanel &panel, Value from, Value to) const {
  BlockReader reader(b, panel);
  int64_t perBlock = reader.packed.chunks;
  b.loop(from, to, 1, [&](Value chunk) {
    Value block = reader.blockAt(b.div(chunk, perBlock)),
          at = reader.chunkAt(block, b.rem(chunk, perBlock)), inPanel = b.sub(chunk, from);
    b.loop(b.idx(0), b.idx(kColumns), kLanes, [&](Value column) {
      Value scales = reader.loadScales(block, column), shifts = reader.loadOffsets(block, column);
      for (int64_t group = 0; group < groups; ++group) {
        Value place = offsetOfGroup(inPanel, group, column);
        b.storeVector(reader.stepOf(scales, at, column, group), steps, place);
        if (offsets)
          b.storeVector(reader.offsetOf(shifts, at, column, group), offsets, place);
      }
      BlockReader::Lines lines = reader.linesOf(at, column);
      auto store = [&](Value vector, int64_t number) {
        // A lane has 4 bytes.
        int64_t ofLane = hasWords() ? 2 : 4;
        Value first = b.mul(b.add(b.mul(inPanel, lanesPerChunk()), number), kColumns * ofLane);
        vector::StoreOp::create(b, vector, levels, b.add(first, b.mul(column, ofLane)));
      };
      for (int64_t quad = 0; quad < kQuads; ++quad) {
        if (!hasWords()) {
          bool usesSigns = byteSums() == ByteSums::Signed;
          store(usesSigns ? reader.loadLevels(lines, quad) : reader.loadQuad(lines, quad), quad);
          continue;
        }
        Value bias = b.splatInt(format.unsignedBias(), b.getI16Type(), 2 * kLanes);
        for (auto [odd, words] : llvm::enumerate(b.splitWords(reader.loadQuad(lines, quad))))
          store(reader.isSigned() ? b.sub(words, bias) : words,
                2 * quad + static_cast<int64_t>(odd));
      }
    });
  });
}

void LevelPanel::sumRows(const ProductRows &rows, Value first, Value end, Value from,
                         Value to) const {
  if (!totals)
    return;
  IntegerRows integers(b, rows.x, rowBits, k);
  b.loop(first, end, 1, [&](Value row) {
    SmallVector<Value> at = rows.indicesOf(rows.nameOf(row));
    b.loop(from, to, 1, [&](Value chunk) {
      Value scale = integers.loadScale(at, chunk);
      for (int64_t group = 0; group < groups; ++group) {
        Value total = integers.sumOf(integers.loadNegativeSum(at, chunk, group, groups), scale);
        memref::StoreOp::create(b, total, totals,
                                ValueRange{b.sub(row, first), b.sub(chunk, from), b.idx(group)});
      }
    });
  });
}

/// Loads vector `vector` of a tile, of pair or quad `number` of a chunk.
Value LevelPanel::loadLevels(const ProductTile &tile, Value chunk, Value number,
                             int64_t vector) const {
  int64_t ofLane = hasWords() ? 2 : 4;
  Value inPanel = b.add(b.mul(b.sub(chunk, tile.from), lanesPerChunk()), number),
        column = b.add(tile.firstColumn, vector * kLanes);
  return b.loadRaw(levels, b.add(b.mul(inPanel, kColumns * ofLane), b.mul(column, ofLane)),
                   kLanes * ofLane);
}

Value LevelPanel::addWords(Value sums, Value words) const {
  return b.dotWords(sums, words, b.splatInt(1, b.getI16Type(), 2 * kLanes));
}

SmallVector<Value> LevelPanel::sumWords(const ProductTile &tile, Value chunk, int64_t group) const {
  constexpr int64_t together = 4; // pairs share the computation of addresses
  int64_t count = lanesOfGroup();
  assert(count % together == 0);
  SmallVector<Value> zeros(tile.rows.size() * tile.vectors, b.splatInt(0, b.getI32Type()));
  return b.carryRolled(b.idx(group * count), b.idx((group + 1) * count), together, zeros,
                       [&](Value first, ValueRange carried) {
                         SmallVector<Value> sums(carried);
                         for (int64_t i = 0; i < together; ++i)
                           addPair(tile, chunk, b.add(first, i), sums);
                         return sums;
                       });
}

void LevelPanel::addPair(const ProductTile &tile, Value chunk, Value pair,
                         MutableArrayRef<Value> sums) const {
  IntegerRows rows(b, tile.x, rowBits, k);
  SmallVector<Value> levelsOfPair;
  for (int64_t v = 0; v < tile.vectors; ++v)
    levelsOfPair.push_back(loadLevels(tile, chunk, pair, v));
  for (auto [r, row] : llvm::enumerate(tile.rows)) {
    Value numbers = rows.loadPair(row, chunk, pair);
    for (auto [v, ofVector] : llvm::enumerate(levelsOfPair)) {
      Value &sum = sums[r * tile.vectors + v];
      sum = b.dotWords(sum, ofVector, numbers);
    }
  }
}

SmallVector<Value> LevelPanel::sumBytes(const ProductTile &tile, Value chunk, int64_t group) const {
  IntegerRows rows(b, tile.x, rowBits, k);
  Type i16 = b.getI16Type(), i32 = b.getI32Type();
  int64_t count = lanesOfGroup(), together = byteSums() == ByteSums::Pairs ? 2 : 1;
  bool inWords = byteSums() == ByteSums::WholeGroup, usesSigns = byteSums() == ByteSums::Signed;
  Value zero = inWords ? b.splatInt(0, i16, 2 * kLanes) : b.splatInt(0, i32);
  SmallVector<Value> zeros(tile.rows.size() * tile.vectors, zero);
  SmallVector<Value> sums = b.carryRolled(
      b.idx(group * count), b.idx((group + 1) * count), together, zeros,
      [&](Value first, ValueRange carried) {
        SmallVector<Value> next(carried);
        SmallVector<SmallVector<Value>> ofQuads(together), magnitudes(together);
        for (int64_t i = 0; i < together; ++i)
          for (int64_t v = 0; v < tile.vectors; ++v) {
            ofQuads[i].push_back(loadLevels(tile, chunk, b.add(first, i), v));
            if (usesSigns)
              magnitudes[i].push_back(math::AbsIOp::create(b, ofQuads[i].back()));
          }
        for (auto [r, row] : llvm::enumerate(tile.rows)) {
          SmallVector<Value> words(tile.vectors);
          for (int64_t i = 0; i < together; ++i) {
            Value numbers = rows.loadQuad(row, chunk, /*plane=*/0, b.add(first, i));
            for (int64_t v = 0; v < tile.vectors; ++v) {
              Value ofVector = ofQuads[i][v];
              Value products =
                  usesSigns ? b.multiplyBytes(magnitudes[i][v], b.applySigns(numbers, ofVector))
                            : b.multiplyBytes(ofVector, numbers);
              words[v] = words[v] ? b.add(words[v], products) : products;
            }
          }
          for (int64_t v = 0; v < tile.vectors; ++v) {
            Value &sum = next[r * tile.vectors + v];
            sum = inWords ? b.add(sum, words[v]) : addWords(sum, words[v]);
          }
        }
        return next;
      });
  if (inWords)
    for (Value &sum : sums)
      sum = addWords(b.splatInt(0, i32), sum);
  return sums;
}

/// Integer sums over a group, [rows][vectors]: signed levels times the rows.
SmallVector<Value> LevelPanel::sumGroup(const ProductTile &tile, Value chunk, int64_t group) const {
  if (hasWords())
    return sumWords(tile, chunk, group);
  SmallVector<Value> sums = sumBytes(tile, chunk, group);
  if (byteSums() == ByteSums::Signed || format.unsignedBias() == 0)
    return sums;
  IntegerRows rows(b, tile.x, rowBits, k);
  Value bias = arith::ConstantIntOp::create(b, b.getI32Type(), format.unsignedBias());
  for (auto [r, row] : llvm::enumerate(tile.rows)) {
    Value negative = rows.loadNegativeSum(row, chunk, group, groups);
    Value tooMuch = b.broadcast(arith::MulIOp::create(b, negative, bias));
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value &sum = sums[r * tile.vectors + v];
      sum = b.add(sum, tooMuch);
    }
  }
  return sums;
}

/// Prefetches the tile's columns of the chunk that is expanded kChunks later. While a chunk is
/// expanded, prefetches would delay its own loads.
void LevelPanel::prefetchNext(const ProductTile &tile, Value chunk) const {
  BlockReader reader(b, tile.panel);
  int64_t perBlock = reader.packed.chunks;
  Value next = b.add(chunk, kChunks), block = reader.blockAt(b.div(next, perBlock));
  // Larger blocks have few headers.
  bool withHeader = perBlock == 1;
  Value at = withHeader ? block : reader.chunkAt(block, b.rem(next, perBlock));
  int64_t bytes = withHeader ? reader.packed.blockBytes : reader.packed.chunkBytes,
          perVector = bytes * kLanes / kColumns;
  prefetchLines(b, tile.panel.memory, b.add(at, b.mul(b.div(tile.firstColumn, kLanes), perVector)),
                tile.vectors * perVector);
}

SmallVector<Value> LevelPanel::emitTile(const ProductTile &tile, Value firstRow) const {
  IntegerRows rows(b, tile.x, rowBits, k);
  return b.carry(tile.from, tile.groups, 1, tile.inits, [&](Value chunk, ValueRange carried) {
    if (tile.panel.streams && b.target.prefetchBytes != 0)
      b.when(tile.panel.streams, [&] { prefetchNext(tile, chunk); });
    SmallVector<Value> sums(carried);
    Value inPanel = b.sub(chunk, tile.from);
    for (int64_t group = 0; group < groups; ++group) {
      SmallVector<Value> integers = sumGroup(tile, chunk, group);
      SmallVector<Value> ofColumns, shifts;
      for (int64_t v = 0; v < tile.vectors; ++v) {
        Value place = offsetOfGroup(inPanel, group, b.add(tile.firstColumn, v * kLanes));
        ofColumns.push_back(b.loadRaw(steps, place, kLanes));
        if (offsets)
          shifts.push_back(b.loadRaw(offsets, place, kLanes));
      }
      for (auto [r, row] : llvm::enumerate(tile.rows)) {
        Value factor = b.broadcast(rows.loadScale(row, chunk)), total;
        if (offsets)
          total = b.broadcast(memref::LoadOp::create(
              b, totals, ValueRange{b.add(firstRow, r), inPanel, b.idx(group)}));
        for (int64_t v = 0; v < tile.vectors; ++v) {
          Value &sum = sums[r * tile.vectors + v];
          Value integer = integers[r * tile.vectors + v];
          sum = b.fma(b.mulf(b.toF32(integer), factor), ofColumns[v], sum);
          if (offsets)
            sum = b.fma(total, shifts[v], sum);
        }
      }
    }
    return sums;
  });
}
