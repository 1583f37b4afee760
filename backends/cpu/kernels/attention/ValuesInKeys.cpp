//===- ValuesInKeys.cpp - values that are a prefix of keys ----------------===//

#include "backends/cpu/kernels/attention/ValuesInKeys.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Transposes a matrix of 16 vectors of 16 words: exchanges halves, then their halves.
static SmallVector<Value> transposeWords(KernelBuilder &b, SmallVector<Value> rows) {
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < kLanes; ++i) {
      if (i & half)
        continue;
      SmallVector<int64_t> upper, lower;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        upper.push_back(lane & half ? kLanes + lane - half : lane);
        lower.push_back(lane & half ? kLanes + lane : lane + half);
      }
      Value first = rows[i], second = rows[i + half];
      rows[i] = vector::ShuffleOp::create(b, first, second, upper);
      rows[i + half] = vector::ShuffleOp::create(b, first, second, lower);
    }
  return rows;
}

/// The first elements of all vectors, then the second ones, and so on; of 1, 2 or 4 vectors.
static Value interleaved(KernelBuilder &b, ArrayRef<Value> vectors) {
  if (vectors.size() == 1)
    return vectors.front();
  SmallVector<Value> even, odd;
  for (auto [i, vector] : llvm::enumerate(vectors))
    (i % 2 == 0 ? even : odd).push_back(vector);
  return vector::InterleaveOp::create(b, interleaved(b, even), interleaved(b, odd));
}

/// Transposes 16 positions times `count` elements, up to 16 groups of them: a group is 32 bits.
static void transposeSquare(KernelBuilder &b, const PackedPanel &keys, Value position,
                            Value element, int64_t count, Value transposed, int64_t values) {
  int64_t depth = keys.depth;
  Type part = b.getIntegerType(32 / static_cast<unsigned>(depth));
  SmallVector<Value> words(kLanes, b.splatInt(0, b.getI32Type()));
  for (int64_t group = 0; group < count / depth; ++group) {
    Value row = b.mul(b.add(b.div(element, depth), group), keys.columns);
    Value at = b.add(keys.offset, b.mul(b.add(row, position), depth));
    words[group] = b.bitcast(b.loadRaw(keys.memory, at, kLanes * depth), b.getI32Type());
  }
  words = transposeWords(b, std::move(words));
  for (int64_t first = 0; first < kLanes; first += depth) {
    SmallVector<Value> together;
    for (int64_t i = 0; i < depth; ++i)
      together.push_back(b.bitcast(words[first + i], part));
    Value group = b.add(b.div(position, depth), first / depth);
    Value at = b.mul(b.add(b.mul(group, values), element), depth);
    Value row = b.bitcast(interleaved(b, together), b.elementOf(transposed));
    if (count != kLanes * depth)
      row = vector::ExtractStridedSliceOp::create(b, row, ArrayRef<int64_t>{0}, count * depth,
                                                  ArrayRef<int64_t>{1});
    vector::StoreOp::create(b, row, transposed, at);
  }
}

void mica::cpu::transposeValues(KernelBuilder &b, const PackedPanel &keys, Value liveGroups,
                                Value transposed, int64_t values) {
  int64_t depth = keys.depth, step = 2 * kLanes;
  Value groups = b.add(liveGroups, step / depth - 1);
  Value live = b.mul(b.div(groups, step / depth), step);
  int64_t square = kLanes * depth, whole = values / square * square;
  b.loop(b.idx(0), live, kLanes, [&](Value position) {
    b.loop(b.idx(0), b.idx(whole), square, [&](Value element) {
      transposeSquare(b, keys, position, element, square, transposed, values);
    });
    if (whole != values)
      transposeSquare(b, keys, position, b.idx(whole), values - whole, transposed, values);
  });
}
