//===- BlockTile.cpp - integer rows times block-quantized weights ---------===//
//
// The operands of vpdpbusd are levels of the weights, made unsigned by a bias, and signed bytes of
// rows. Within a chunk of 32 elements along K, sums of integers are exact: the sums of high and low
// bytes are combined to 256 * high + low, and the low sum starts with minus the contribution of the
// bias. Then a sum is converted to f32 and added, times the scale of the row and the step of the
// weight.
//
// If rows of 16 bits are words, levels are converted to words: vpmaddwd and vpdpwssd multiply and
// sum two consecutive words, with the same integer results.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/kernels/matmul/BlockTile.h"

#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/IntegerRows.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Emits the sums of one tile.
class BlockTile {
public:
  BlockTile(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), reader(b, tile.panel), rows(b, tile.x, tile.rowBits, tile.k) {}

  SmallVector<Value> emit() {
    int64_t chunks = llvm::divideCeil(tile.k, PackedBlocks::kChunk),
            perBlock = reader.packed.chunks;
    return b.carry(tile.from, tile.groups, 1, tile.inits, [&](Value block, ValueRange sums) {
      prefetchForGroup(b, tile.panel, tile.ahead, tile.from, block, reader.packed.blockBytes);
      Value begin = reader.blockAt(block);
      if (prefetches())
        reader.prefetchHeader(begin);
      SmallVector<Columns> columns = loadColumns(begin);
      if (perBlock == 1)
        return addChunk(begin, b.idx(0), block, columns, sums);
      Value first = b.mul(block, perBlock), end = b.idx(perBlock);
      if (chunks % perBlock != 0) // the last block may be incomplete
        end = arith::MinSIOp::create(b, end, b.sub(b.idx(chunks), first));
      return b.carry(b.idx(0), end, 1, sums, [&](Value chunk, ValueRange carried) {
        return addChunk(begin, chunk, b.add(first, chunk), columns, carried);
      });
    });
  }

private:
  static constexpr int64_t kQuads = PackedBlocks::kQuads;

  /// Whether the tile prefetches blocks: a single row that reads all columns of the panel is slower
  /// than memory if it unpacks codes; 8-bit codes need no prefetches.
  bool prefetches() const {
    return tile.rows.size() == 1 && tile.vectors * kLanes == PackedBlocks::kColumns &&
           reader.format.codeBits() < 8;
  }

  /// The operands of 16 columns of a block.
  struct Columns {
    Value first, scales, offsets;
  };

  SmallVector<Columns> loadColumns(Value block) {
    SmallVector<Columns> columns;
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value first = b.add(tile.firstColumn, v * kLanes);
      columns.push_back({first, reader.loadScales(block, first), reader.loadOffsets(block, first)});
    }
    return columns;
  }

  /// The operands of a row of x in a chunk. `starts` and `sums` have an entry per group of the
  /// weight.
  struct RowChunk {
    Value scale;
    SmallVector<Value> starts; ///< initial values of low sums; null: zero
    SmallVector<Value> sums;   ///< of values, for offsets
  };

  RowChunk loadRow(ArrayRef<Value> leading, Value chunk) {
    const BlockFormat &format = reader.format;
    Type i32 = b.getI32Type();
    RowChunk result;
    Value scale = rows.loadScale(leading, chunk);
    result.scale = b.broadcast(scale);
    int64_t groups = reader.groupsOfChunk();
    for (int64_t group = 0; group < groups; ++group) {
      Value negative = rows.loadNegativeSum(leading, chunk, group, groups);
      result.starts.push_back(
          format.unsignedBias()
              ? b.broadcast(arith::MulIOp::create(
                    b, negative, arith::ConstantIntOp::create(b, i32, format.unsignedBias())))
              : Value());
      if (format.hasOffsets())
        result.sums.push_back(b.broadcast(rows.sumOf(negative, scale)));
    }
    return result;
  }

  /// The number of integer sums of a row and a vector within a group: one for each plane of bytes,
  /// unless these are multiplied together as words.
  int64_t parts() const { return hasWords() ? 1 : tile.rowBits / 8; }
  bool hasWords() const { return b.hasWords(tile.rowBits); }

  /// Integer sums over the quads of a group, [rows][parts][vectors]. Quads are processed one after
  /// the other, so that loaded values of rows are used immediately: registers hold sums.
  SmallVector<Value> sumGroup(ArrayRef<RowChunk> x, Value chunk, int64_t group,
                              MutableArrayRef<BlockReader::Lines> lines) {
    int64_t count = kQuads / reader.groupsOfChunk();
    SmallVector<Value> sums;
    for (const RowChunk &ofRow : x)
      for (int64_t part = 0; part < parts(); ++part) {
        bool isLow = part == parts() - 1;
        Value start = isLow ? ofRow.starts[group] : Value();
        sums.append(tile.vectors, start ? start : b.splatInt(0, b.getI32Type()));
      }
    for (int64_t quad = group * count; quad < (group + 1) * count; ++quad)
      hasWords() ? addWords(sums, chunk, quad, lines) : addQuad(sums, chunk, quad, lines);
    return sums;
  }

  void addQuad(MutableArrayRef<Value> sums, Value chunk, int64_t quad,
               MutableArrayRef<BlockReader::Lines> lines) {
    SmallVector<SmallVector<Value>> ofRows;
    for (ArrayRef<Value> leading : tile.rows)
      for (int64_t plane = 0; plane < tile.rowBits / 8; ++plane)
        ofRows.push_back(b.signedBytes(rows.loadQuad(leading, chunk, plane, b.idx(quad))));
    for (auto [v, ofVector] : llvm::enumerate(lines)) {
      SmallVector<Value> levels = b.unsignedBytes(reader.loadQuad(ofVector, quad));
      for (auto [i, numbers] : llvm::enumerate(ofRows)) {
        Value &sum = sums[i * tile.vectors + v];
        sum = b.dotBytes(sum, levels, numbers);
      }
    }
  }

  void addWords(MutableArrayRef<Value> sums, Value chunk, int64_t quad,
                MutableArrayRef<BlockReader::Lines> lines) {
    SmallVector<SmallVector<Value>> ofRows;
    for (ArrayRef<Value> leading : tile.rows)
      ofRows.push_back({rows.loadPair(leading, chunk, b.idx(2 * quad)),
                        rows.loadPair(leading, chunk, b.idx(2 * quad + 1))});
    for (auto [v, ofVector] : llvm::enumerate(lines)) {
      SmallVector<Value> levels = b.splitWords(reader.loadQuad(ofVector, quad));
      for (auto [r, numbers] : llvm::enumerate(ofRows))
        for (auto [both, pair] : llvm::zip_equal(levels, numbers)) {
          Value &sum = sums[r * tile.vectors + v];
          sum = b.dotWords(sum, both, pair);
        }
    }
  }

  SmallVector<Value> addChunk(Value block, Value inBlock, Value chunk, ArrayRef<Columns> columns,
                              ValueRange sums) {
    SmallVector<RowChunk> x;
    for (ArrayRef<Value> leading : tile.rows)
      x.push_back(loadRow(leading, chunk));
    Value at = reader.chunkAt(block, inBlock);
    if (prefetches())
      reader.prefetchChunk(at);
    SmallVector<BlockReader::Lines> lines;
    for (const Columns &column : columns)
      lines.push_back(reader.linesOf(at, column.first));
    SmallVector<Value> next(sums);
    for (int64_t group = 0; group < reader.groupsOfChunk(); ++group) {
      SmallVector<Value> integers = sumGroup(x, chunk, group, lines);
      for (auto [v, column] : llvm::enumerate(columns)) {
        Value step = reader.stepOf(column.scales, at, column.first, group),
              offset = reader.offsetOf(column.offsets, at, column.first, group);
        for (auto [r, ofRow] : llvm::enumerate(x)) {
          size_t first = r * parts() * tile.vectors + v;
          Value integer = integers[first];
          if (parts() == 2)
            integer = b.add(arith::ShLIOp::create(b, integer, b.splatInt(8, b.getI32Type())),
                            integers[first + tile.vectors]);
          Value &sum = next[r * tile.vectors + v];
          sum = b.fma(b.mulf(b.toF32(integer), ofRow.scale), step, sum);
          if (offset)
            sum = b.fma(ofRow.sums[group], offset, sum);
        }
      }
    }
    return next;
  }

  KernelBuilder &b;
  const ProductTile &tile;
  BlockReader reader;
  IntegerRows rows;
};

} // namespace

SmallVector<Value> mica::cpu::emitBlockTile(KernelBuilder &b, const ProductTile &tile) {
  return BlockTile(b, tile).emit();
}
