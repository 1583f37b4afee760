//===- BlockTile.cpp - products of integer rows with weights in blocks -------------===//
//
// Levels of the weights, made unsigned by a bias, are one operand of vpdpbusd, signed limbs of rows
// the other one. Within a chunk of 32 elements along K sums of integers are exact: those of two
// limbs become 256 * high + low, and what the bias adds too much is in the start of the low sum.
// Then a sum becomes f32 and is added, times the scale of the row and the step of the weight.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/kernels/matmul/BlockTile.h"

#include "backends/cpu/kernels/matmul/BlockReader.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// The element of `x` whose bytes begin at `byte` of the row that `leading` names, in every lane.
Value broadcastOfRow(KernelBuilder &b, Value x, ArrayRef<Value> leading, Value byte, Type element) {
  SmallVector<Value> at(leading);
  at.push_back(byte);
  return b.broadcastFromBytes(x, at, element);
}

/// Emits the sums of one tile. See IntegerRowLayout for the rows.
class BlockTile {
public:
  BlockTile(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), reader(b, tile.panel), row(tile.limbs, tile.k) {}

  SmallVector<Value> emit() {
    int64_t chunks = llvm::divideCeil(tile.k, PackedBlocks::kChunk),
            perBlock = reader.packed.chunks;
    return b.carry(tile.from, tile.groups, 1, tile.inits, [&](Value block, ValueRange sums) {
      prefetchForGroup(b, tile.panel, tile.ahead, tile.from, block, reader.packed.blockBytes);
      Value begin = reader.blockAt(block);
      SmallVector<Columns> columns = loadColumns(begin);
      if (perBlock == 1)
        return addChunk(begin, b.idx(0), block, columns, sums);
      Value first = b.mul(block, perBlock), end = b.idx(perBlock);
      if (chunks % perBlock != 0) // the last block may end early
        end = arith::MinSIOp::create(b, end, b.sub(b.idx(chunks), first));
      return b.carry(b.idx(0), end, 1, sums, [&](Value chunk, ValueRange carried) {
        return addChunk(begin, chunk, b.add(first, chunk), columns, carried);
      });
    });
  }

private:
  static constexpr int64_t kQuads = PackedBlocks::kQuads;

  /// What a block has of 16 columns.
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

  /// What a chunk has of a row of x. `starts` and `sums` are of each group of the weight.
  struct RowChunk {
    Value scale;
    SmallVector<Value> starts; ///< of low sums; null: zero
    SmallVector<Value> sums;   ///< of numbers, for offsets
  };

  Value loadScalar(ArrayRef<Value> leading, Value byte, Type element) {
    SmallVector<Value> at(leading);
    at.push_back(byte);
    Value bytes = b.loadRaw(tile.x, at, 4);
    return vector::ExtractOp::create(b, b.bitcast(bytes, element), 0);
  }

  RowChunk loadRow(ArrayRef<Value> leading, Value chunk) {
    const BlockFormat &format = reader.format;
    Type i32 = b.getI32Type();
    RowChunk result;
    Value scale = loadScalar(leading, b.add(b.mul(chunk, 4), row.scales), b.getF32Type());
    result.scale = b.broadcast(scale);
    constexpr int64_t kSums = PackedBlocks::kChunk / IntegerRowLayout::sumGroup;
    int64_t groups = reader.groupsOfChunk(), perGroup = kSums / groups;
    for (int64_t group = 0; group < groups; ++group) {
      Value negative;
      for (int64_t i = 0; i < perGroup; ++i) {
        Value entry = b.add(b.mul(chunk, 4 * kSums), row.sums + 4 * (group * perGroup + i));
        Value part = loadScalar(leading, entry, i32);
        negative = negative ? b.add(negative, part) : part;
      }
      result.starts.push_back(
          format.unsignedBias()
              ? b.broadcast(arith::MulIOp::create(
                    b, negative, arith::ConstantIntOp::create(b, i32, format.unsignedBias())))
              : Value());
      if (format.hasOffsets()) {
        Value sum = arith::SubIOp::create(b, arith::ConstantIntOp::create(b, i32, 0), negative);
        Value number = arith::SIToFPOp::create(b, b.getF32Type(), sum);
        result.sums.push_back(b.broadcast(b.mulf(number, scale)));
      }
    }
    return result;
  }

  /// Four bytes of a limb of a row, as dotBytes takes them.
  SmallVector<Value> loadQuad(ArrayRef<Value> leading, Value chunk, int64_t limb, int64_t quad) {
    Value byte = b.add(b.mul(chunk, PackedBlocks::kChunk), limb * row.padded + 4 * quad);
    return b.signedBytes(
        b.bitcast(broadcastOfRow(b, tile.x, leading, byte, b.getI32Type()), b.getI8Type()));
  }

  /// Sums of integers over the quads of a group, [rows][limbs][vectors]. Quads are taken one after
  /// the other, so that what is loaded of the rows is used at once: registers hold sums.
  SmallVector<Value> sumGroup(ArrayRef<RowChunk> x, Value chunk, int64_t group,
                              MutableArrayRef<BlockReader::Lines> lines) {
    int64_t count = kQuads / reader.groupsOfChunk();
    SmallVector<Value> sums;
    for (const RowChunk &ofRow : x)
      for (int64_t limb = 0; limb < tile.limbs; ++limb) {
        bool isLow = limb == tile.limbs - 1;
        Value start = isLow ? ofRow.starts[group] : Value();
        sums.append(tile.vectors, start ? start : b.splatInt(0, b.getI32Type()));
      }
    for (int64_t quad = group * count; quad < (group + 1) * count; ++quad) {
      SmallVector<SmallVector<Value>> ofRows;
      for (ArrayRef<Value> leading : tile.rows)
        for (int64_t limb = 0; limb < tile.limbs; ++limb)
          ofRows.push_back(loadQuad(leading, chunk, limb, quad));
      for (auto [v, ofVector] : llvm::enumerate(lines)) {
        SmallVector<Value> levels = b.unsignedBytes(reader.loadQuad(ofVector, quad));
        for (auto [i, numbers] : llvm::enumerate(ofRows)) {
          Value &sum = sums[i * tile.vectors + v];
          sum = b.dotBytes(sum, levels, numbers);
        }
      }
    }
    return sums;
  }

  SmallVector<Value> addChunk(Value block, Value inBlock, Value chunk, ArrayRef<Columns> columns,
                              ValueRange sums) {
    SmallVector<RowChunk> x;
    for (ArrayRef<Value> leading : tile.rows)
      x.push_back(loadRow(leading, chunk));
    Value at = reader.chunkAt(block, inBlock);
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
          size_t first = r * tile.limbs * tile.vectors + v;
          Value integer = integers[first];
          if (tile.limbs == 2)
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
  IntegerRowLayout row;
};

} // namespace

SmallVector<Value> mica::cpu::emitBlockTile(KernelBuilder &b, const ProductTile &tile) {
  return BlockTile(b, tile).emit();
}
