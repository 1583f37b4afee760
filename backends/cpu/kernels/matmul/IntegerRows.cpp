//===- IntegerRows.cpp - rows of integers in registers --------------------===//

#include "backends/cpu/kernels/matmul/IntegerRows.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

static SmallVector<Value> at(ArrayRef<Value> row, Value byte) {
  SmallVector<Value> indices(row);
  indices.push_back(byte);
  return indices;
}

Value IntegerRows::loadScalar(Row row, Value byte, Type element) const {
  return vector::ExtractOp::create(b, b.bitcast(b.loadRaw(x, at(row, byte), 4), element), 0);
}

Value IntegerRows::loadInEachLane(Row row, Value byte) const {
  return b.broadcastFromBytes(x, at(row, byte), b.getI32Type());
}

Value IntegerRows::loadScale(Row row, Value chunk) const {
  return loadScalar(row, b.add(b.mul(chunk, 4), layout.scales), b.getF32Type());
}

Value IntegerRows::loadNegativeSum(Row row, Value chunk, int64_t group, int64_t groups) const {
  constexpr int64_t kSums = IntegerRowLayout::group / IntegerRowLayout::sumGroup;
  int64_t perGroup = kSums / groups;
  Value negative;
  for (int64_t i = 0; i < perGroup; ++i) {
    Value entry = b.add(b.mul(chunk, 4 * kSums), layout.sums + 4 * (group * perGroup + i));
    Value part = loadScalar(row, entry, b.getI32Type());
    negative = negative ? b.add(negative, part) : part;
  }
  return negative;
}

Value IntegerRows::sumOf(Value negative, Value scale) const {
  Value sum =
      arith::SubIOp::create(b, arith::ConstantIntOp::create(b, b.getI32Type(), 0), negative);
  Value number = arith::SIToFPOp::create(b, b.getF32Type(), sum);
  return b.mulf(number, scale);
}

Value IntegerRows::loadQuad(Row row, Value chunk, int64_t plane, Value quad) const {
  Value first = b.add(b.mul(chunk, IntegerRowLayout::group), plane * layout.padded);
  return b.bitcast(loadInEachLane(row, b.add(first, b.mul(quad, 4))), b.getI8Type());
}

Value IntegerRows::loadPair(Row row, Value chunk, Value pair) const {
  Value first = b.mul(chunk, 2 * IntegerRowLayout::group);
  return b.bitcast(loadInEachLane(row, b.add(first, b.mul(pair, 4))), b.getI16Type());
}
