//===- IntegerTile.cpp - the inner loop of products of integers --------------------===//

#include "backends/cpu/lowering/kernels/Tile.h"
#include "ir/Mica/Mica.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// Emits the sums of one tile; see QuantizedRow and QuantizedMatrix for the memory.
class IntegerTile {
public:
  IntegerTile(KernelBuilder &b, const ProductTile &tile)
      : b(b), tile(tile), row(tile.k), matrix(tile.panel.quantized, kBlockColumns, tile.k),
        int4(isa<Int4Type>(tile.panel.quantized)) {}

  SmallVector<Value> emit() {
    return b.carry(tile.from, tile.groups, 1, tile.inits, [&](Value group, ValueRange sums) {
      return int4 ? addGroup(group, sums) : addQuad(group, sums);
    });
  }

private:
  Value loadX(ArrayRef<Value> leading, Value byte, Type element) {
    return broadcastOfRow(b, tile.x, leading, byte, element);
  }

  /// Four bytes of a row, as often as fit a vector.
  Value loadQuad(ArrayRef<Value> leading, Value byte) {
    return b.bitcast(loadX(leading, byte, b.getI32Type()), b.getI8Type());
  }

  Value byteOf(Value group, int64_t vector, int64_t bytesPerColumn) {
    Value column = b.add(tile.firstColumn, vector * kLanes);
    return b.add(b.add(tile.panel.offset, b.mul(group, matrix.groupBytes)),
                 b.mul(column, bytesPerColumn));
  }

  /// Calls `function(vector, at)` for the vectors of 16 columns; at(r) is where the sum of row r
  /// stands.
  template <typename Function> void eachVector(Function function) {
    for (int64_t v = 0; v < tile.vectors; ++v)
      function(v, [&](size_t r) { return r * tile.vectors + v; });
  }

  /// int8: four values along K.
  SmallVector<Value> addQuad(Value quad, ValueRange sums) {
    SmallVector<SmallVector<Value>> x;
    for (ArrayRef<Value> leading : tile.rows)
      x.push_back(b.unsignedBytes(loadQuad(leading, b.mul(quad, 4))));
    prefetchForGroup(b, tile, quad, matrix.groupBytes);
    SmallVector<Value> next(sums);
    eachVector([&](int64_t v, auto at) {
      SmallVector<Value> w =
          b.signedBytes(b.loadRaw(tile.panel.memory, byteOf(quad, v, 4), 4 * kLanes));
      for (size_t r = 0; r < x.size(); ++r)
        next[at(r)] = b.dotBytes(next[at(r)], x[r], w);
    });
    return next;
  }

  /// int4: a group of 32 values along K. The integers of the weights are the unsigned operand, rows
  /// the signed one; the sum starts with what the 8 in every weight adds too much.
  SmallVector<Value> addGroup(Value group, ValueRange sums) {
    SmallVector<Value> starts, parts(sums.size()), next(sums);
    for (ArrayRef<Value> leading : tile.rows)
      starts.push_back(loadX(leading, b.add(b.mul(group, 4), row.sums), b.getI32Type()));
    eachVector([&](int64_t, auto at) {
      for (size_t r = 0; r < starts.size(); ++r)
        parts[at(r)] = starts[r];
    });
    prefetchForGroup(b, tile, group, matrix.groupBytes);
    for (int64_t pair = 0; pair < QuantizedRow::group / 8; ++pair)
      addPair(group, pair, parts);
    eachVector([&](int64_t v, auto at) {
      Value multipliers = arith::ExtSIOp::create(
          b, b.vec(b.getI32Type()), b.loadRaw(tile.panel.memory, byteOf(group, v, 1), kLanes));
      for (size_t r = 0; r < starts.size(); ++r)
        next[at(r)] = b.dotWords(next[at(r)], parts[at(r)], multipliers);
    });
    return next;
  }

  /// Eight of those values. Rows are read one after the other: where a quad is used once, the
  /// instruction takes it from memory, else it needs a register for as long as the row's turn.
  void addPair(Value group, int64_t pair, MutableArrayRef<Value> parts) {
    Type i8 = b.getI8Type(), i32 = b.getI32Type();
    Value nibbles = b.splatInt(0x0f0f0f0f, i32);
    SmallVector<SmallVector<Value>> low, high;
    eachVector([&](int64_t v, auto) {
      Value at = b.add(byteOf(group, v, 4), kBlockColumns * (1 + 4 * pair));
      Value both = b.loadFromBytes(tile.panel.memory, at, i32);
      auto quad = [&](Value values) {
        return b.unsignedBytes(b.bitcast(arith::AndIOp::create(b, values, nibbles), i8));
      };
      low.push_back(quad(both));
      high.push_back(quad(arith::ShRUIOp::create(b, both, b.splatInt(4, i32))));
    });
    Value byte = b.add(b.mul(group, QuantizedRow::group), row.numbers + 8 * pair);
    for (auto [r, leading] : llvm::enumerate(tile.rows)) {
      SmallVector<Value> x = b.signedBytes(loadQuad(leading, byte)),
                         behind = b.signedBytes(loadQuad(leading, b.add(byte, 4)));
      size_t number = 0;
      eachVector([&](int64_t, auto at) {
        Value &part = parts[at(r)];
        part = b.dotBytes(b.dotBytes(part, low[number], x), high[number], behind);
        ++number;
      });
    }
  }

  KernelBuilder &b;
  const ProductTile &tile;
  QuantizedRow row;
  QuantizedMatrix matrix; ///< of one block
  bool int4;
};

} // namespace

Value mica::cpu::scaleSum(KernelBuilder &b, const IntegerRow &row, const PackedPanel &panel,
                          Value column, Value sum, bool shifted) {
  Value rowScale =
      broadcastOfRow(b, row.x, row.leading, b.idx(QuantizedRow(row.k).scale), b.getF32Type());
  Value byte = b.mul(column, 4);
  Value scales = b.loadFromBytes(panel.memory, b.add(panel.scales, byte), b.getF32Type());
  Value correction;
  if (shifted)
    correction = b.loadFromBytes(panel.memory, b.add(panel.sums, byte), b.getI32Type());
  return dequantize(b, sum, correction, rowScale, scales);
}

void mica::cpu::expandInt4Group(KernelBuilder &b, Value packed, Value from, Value bytes, Value to) {
  Type i8 = b.getI8Type(), i16 = b.getIntegerType(16);
  constexpr int64_t kBytes = 4 * kLanes;
  SmallVector<int64_t> fourTimes;
  for (int64_t lane = 0; lane < kBytes; ++lane)
    fourTimes.push_back(lane / 4);
  for (int64_t v = 0; v < kBlockColumns / kLanes; ++v) {
    Value multipliers = b.loadRaw(packed, b.add(from, v * kLanes), kLanes);
    multipliers = vector::ShuffleOp::create(b, multipliers, multipliers, fourTimes);
    multipliers = arith::ExtSIOp::create(b, b.vec(i16, kBytes), multipliers);
    for (int64_t pair = 0; pair < QuantizedRow::group / 8; ++pair) {
      Value both =
          b.loadRaw(packed, b.add(from, kBlockColumns * (1 + 4 * pair) + v * kBytes), kBytes);
      Value low = arith::AndIOp::create(b, both, b.splatInt(15, i8, kBytes)),
            high = arith::ShRUIOp::create(b, both, b.splatInt(4, i8, kBytes));
      auto expand = [&](Value nibbles, int64_t quad) {
        Value number = b.sub(arith::ExtUIOp::create(b, b.vec(i16, kBytes), nibbles),
                             b.splatInt(8, i16, kBytes));
        Value product = arith::MulIOp::create(b, number, multipliers);
        b.storeVector(arith::TruncIOp::create(b, b.vec(i8, kBytes), product), bytes,
                      b.add(to, quad * kBlockColumns * 4 + v * kBytes));
      };
      expand(low, 2 * pair);
      expand(high, 2 * pair + 1);
    }
  }
}

SmallVector<Value> mica::cpu::emitIntegerTile(KernelBuilder &b, const ProductTile &tile) {
  return IntegerTile(b, tile).emit();
}

Value mica::cpu::dequantize(KernelBuilder &b, Value sum, Value correction, Value rowScale,
                            Value columnScales) {
  if (correction)
    sum = b.sub(sum, arith::ShLIOp::create(b, correction, b.splatInt(7, b.getI32Type())));
  Value number = arith::SIToFPOp::create(b, b.vecF32(), sum);
  return b.mulf(b.mulf(number, rowScale), columnScales);
}
