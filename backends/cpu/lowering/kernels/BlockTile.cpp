//===- BlockTile.cpp - products of integer rows with weights in blocks -------------===//
//
// Levels of the weights, made unsigned by a bias, are one operand of vpdpbusd, signed limbs of rows
// the other one. Within a chunk of 32 elements along K sums of integers are exact: those of two
// limbs become 256 * high + low, and what the bias adds too much is in the start of the low sum.
// Then a sum becomes f32 and is added, times the scale of the row and the step of the weight.
//
//===----------------------------------------------------------------------===//

#include "backends/cpu/lowering/kernels/BlockReader.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Emits the sums of one tile. See IntegerRowLayout for the rows.
class BlockTile {
public:
  BlockTile(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), reader(b, tile.panel), row(tile.limbs, tile.k) {}

  SmallVector<Value> emit() {
    int64_t chunks = llvm::divideCeil(tile.k, PackedBlocks::kChunk), perBlock = reader.packed.chunks;
    return b.carry(tile.from, tile.groups, 1, tile.inits, [&](Value block, ValueRange sums) {
      prefetchForGroup(b, tile, block, reader.packed.blockBytes);
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
    SmallVector<Value> starts;                             ///< of low sums; null: zero
    SmallVector<Value> sums;                               ///< of numbers, for offsets
    SmallVector<SmallVector<SmallVector<Value>>> quads{};  ///< [limb][quad], as dotBytes takes them
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
    for (int64_t limb = 0; limb < tile.limbs; ++limb) {
      SmallVector<SmallVector<Value>> &quads = result.quads.emplace_back();
      for (int64_t quad = 0; quad < kQuads; ++quad) {
        Value byte = b.add(b.mul(chunk, PackedBlocks::kChunk), limb * row.padded + 4 * quad);
        Value bytes = broadcastOfRow(b, tile.x, leading, byte, i32);
        quads.push_back(b.signedBytes(b.bitcast(bytes, b.getI8Type())));
      }
    }
    return result;
  }

  /// The sum of integers of a row over the quads of a group, as f32.
  Value sumGroup(ArrayRef<SmallVector<Value>> levels, const RowChunk &x, int64_t group) {
    Type i32 = b.getI32Type();
    int64_t count = kQuads / reader.groupsOfChunk();
    Value sum;
    for (int64_t limb = 0; limb < tile.limbs; ++limb) {
      bool isLow = limb == tile.limbs - 1;
      Value part = isLow && x.starts[group] ? x.starts[group] : b.splatInt(0, i32);
      for (int64_t quad = group * count; quad < (group + 1) * count; ++quad)
        part = b.dotBytes(part, levels[quad], x.quads[limb][quad]);
      sum = sum ? b.add(arith::ShLIOp::create(b, sum, b.splatInt(8, i32)), part) : part;
    }
    return b.toF32(sum);
  }

  SmallVector<Value> addChunk(Value block, Value inBlock, Value chunk, ArrayRef<Columns> columns,
                              ValueRange sums) {
    SmallVector<RowChunk> x;
    for (ArrayRef<Value> leading : tile.rows)
      x.push_back(loadRow(leading, chunk));
    Value at = reader.chunkAt(block, inBlock);
    SmallVector<Value> next(sums);
    for (auto [v, column] : llvm::enumerate(columns)) {
      SmallVector<SmallVector<Value>> levels;
      for (Value quad : reader.loadQuads(at, column.first))
        levels.push_back(b.unsignedBytes(quad));
      for (int64_t group = 0; group < reader.groupsOfChunk(); ++group) {
        Value step = reader.stepOf(column.scales, at, column.first, group),
              offset = reader.offsetOf(column.offsets, at, column.first, group);
        for (auto [r, ofRow] : llvm::enumerate(x)) {
          Value &sum = next[r * tile.vectors + v];
          sum = b.fma(b.mulf(sumGroup(levels, ofRow, group), ofRow.scale), step, sum);
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
