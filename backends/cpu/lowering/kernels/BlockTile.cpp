//===- BlockTile.cpp - products of integers with a scale for each group ------------===//

#include "backends/cpu/lowering/kernels/Tile.h"
#include "ir/Mica/Mica.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Emits the sums of one tile. The integers of the weights are the unsigned operand; the sum of a
/// group starts with what was added to each of them too much. See BlockRow for the rows.
class BlockTile {
public:
  BlockTile(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), row(tile.k), matrix(tile.panel.quantized, kBlockColumns, tile.k),
        fourBits(cast<BlockIntType>(tile.panel.quantized).getBits() == 4) {}

  SmallVector<Value> emit() {
    return b.carry(tile.from, tile.groups, 1, tile.inits,
                   [&](Value group, ValueRange sums) { return addGroup(group, sums); });
  }

private:
  static constexpr int64_t kQuads = BlockRow::group / 4, kScaleBytes = 2;

  /// What a group has of a row of x.
  struct RowGroup {
    Value start, scale;
    SmallVector<SmallVector<Value>> quads; ///< four bytes each, as often as fit a vector
  };

  RowGroup loadRow(ArrayRef<Value> leading, Value group) {
    auto load = [&](Value byte, Type element) {
      return broadcastOfRow(b, tile.x, leading, byte, element);
    };
    Type i32 = b.getI32Type();
    Value entry = b.mul(group, 4);
    RowGroup result{
        load(b.add(entry, row.sums), i32), load(b.add(entry, row.scales), b.getF32Type()), {}};
    if (!fourBits) // 128 is 16 times 8
      result.start = arith::ShLIOp::create(b, result.start, b.splatInt(4, i32));
    for (int64_t quad = 0; quad < kQuads; ++quad) {
      Value bytes = load(b.add(b.mul(group, BlockRow::group), 4 * quad), i32);
      result.quads.push_back(b.signedBytes(b.bitcast(bytes, b.getI8Type())));
    }
    return result;
  }

  /// Adds the products with four values of each of 16 rows of the weight.
  void addQuad(int64_t quad, Value bytes, ArrayRef<RowGroup> x, MutableArrayRef<Value> parts) {
    SmallVector<Value> w = b.unsignedBytes(bytes);
    for (auto [part, ofRow] : llvm::zip_equal(parts, x))
      part = b.dotBytes(part, w, ofRow.quads[quad]);
  }

  /// The sums of a group whose integers begin at `byte`.
  SmallVector<Value> addIntegers(Value byte, ArrayRef<RowGroup> x) {
    Value memory = tile.panel.memory;
    SmallVector<Value> parts = llvm::map_to_vector(x, [](const RowGroup &r) { return r.start; });
    Type i8 = b.getI8Type(), i32 = b.getI32Type();
    constexpr int64_t kLine = 4 * kBlockColumns;
    if (!fourBits) {
      for (int64_t quad = 0; quad < kQuads; ++quad)
        addQuad(quad, b.loadRaw(memory, b.add(byte, quad * kLine), 4 * kLanes), x, parts);
      return parts;
    }
    Value nibbles = b.splatInt(0x0f0f0f0f, i32);
    for (int64_t pair = 0; pair < kQuads / 2; ++pair) {
      Value both = b.loadFromBytes(memory, b.add(byte, pair * kLine), i32),
            high = arith::ShRUIOp::create(b, both, b.splatInt(4, i32));
      addQuad(2 * pair, b.bitcast(arith::AndIOp::create(b, both, nibbles), i8), x, parts);
      addQuad(2 * pair + 1, b.bitcast(arith::AndIOp::create(b, high, nibbles), i8), x, parts);
    }
    return parts;
  }

  SmallVector<Value> addGroup(Value group, ValueRange sums) {
    SmallVector<RowGroup> x;
    for (ArrayRef<Value> leading : tile.rows)
      x.push_back(loadRow(leading, group));
    Value inPanel = b.mul(group, matrix.groupBytes);
    prefetchForGroup(b, tile, group, matrix.groupBytes);
    SmallVector<Value> next(sums);
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value begin = b.add(tile.panel.offset, inPanel), column = b.add(tile.firstColumn, v * kLanes);
      Value integers = b.add(b.add(begin, b.mul(column, 4)), kScaleBytes * kBlockColumns);
      SmallVector<Value> parts = addIntegers(integers, x);
      Value scales = b.toF32(b.loadFromBytes(
          tile.panel.memory, b.add(begin, b.mul(column, kScaleBytes)), b.getF16Type()));
      for (auto [r, part] : llvm::enumerate(parts)) {
        Value &sum = next[r * tile.vectors + v];
        sum = b.fma(b.mulf(b.toF32(part), x[r].scale), scales, sum);
      }
    }
    return next;
  }

  KernelBuilder &b;
  const ProductTile &tile;
  BlockRow row;
  QuantizedMatrix matrix; ///< of one block of columns
  bool fourBits;
};

} // namespace

SmallVector<Value> mica::cpu::emitBlockTile(KernelBuilder &b, const ProductTile &tile) {
  return BlockTile(b, tile).emit();
}

Value mica::cpu::loadQuadOfBlocks(KernelBuilder &b, const PackedPanel &panel, Value lane,
                                  Value quad) {
  auto blocks = cast<BlockIntType>(panel.quantized);
  constexpr int64_t kQuads = BlockRow::group / 4;
  Type i32 = b.getI32Type();
  int64_t groupBytes = QuantizedMatrix(blocks, kBlockColumns, BlockRow::group).groupBytes;
  Value group = b.div(quad, kQuads), begin = b.add(panel.offset, b.mul(group, groupBytes)),
        inGroup = b.rem(quad, kQuads);
  Value scale = b.broadcastFromBytes(panel.memory, b.add(begin, b.mul(lane, 2)), b.getF16Type());
  bool fourBits = blocks.getBits() == 4;
  Value line = fourBits ? b.div(inGroup, 2) : inGroup;
  Value bytes = b.loadRaw(
      panel.memory,
      b.add(b.add(begin, b.mul(lane, 4)), b.add(b.mul(line, 4 * kBlockColumns), 2 * kBlockColumns)),
      4);
  VectorType words = b.vec(i32, 4);
  Value integers = arith::ExtUIOp::create(b, words, bytes);
  if (fourBits) {
    Value down = arith::IndexCastOp::create(b, i32, b.mul(b.rem(inGroup, 2), 4));
    integers = arith::ShRUIOp::create(b, integers, vector::BroadcastOp::create(b, words, down));
    integers = arith::AndIOp::create(b, integers, b.splatInt(15, i32, 4));
  }
  integers = b.sub(integers, b.splatInt(fourBits ? 8 : 128, i32, 4));
  Value factor = vector::ExtractStridedSliceOp::create(b, b.toF32(scale), 0, 4, 1);
  return b.mulf(b.toF32(integers), factor);
}
