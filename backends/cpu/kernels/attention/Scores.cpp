//===- Scores.cpp - softcap, ALiBi and masks of scores --------------------===//

#include "backends/cpu/kernels/attention/Scores.h"

#include "backends/cpu/kernels/attention/Softmax.h"

#include <numbers>
#include <numeric>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

float Scores::log2PerScore() const {
  bool isScaled = spec.softcap || spec.slopes;
  return static_cast<float>((isScaled ? 1 : spec.scale) * std::numbers::log2e);
}

SmallVector<Value> Scores::shaped(Value part, const PositionBlock &at, Value pair,
                                  ArrayRef<Value> scores) {
  SmallVector<Value> result(scores);
  if (spec.softcap)
    llvm::transform(result, result.begin(), [&](Value score) { return cap(score); });
  if (!spec.slopes)
    return result;
  int64_t vectors = block / kLanes;
  for (auto [number, score] : llvm::enumerate(result)) {
    int64_t i = number / vectors, v = number % vectors;
    score = addDistance(part, score, b.add(pair, i), b.add(at.first, v * kLanes));
  }
  return result;
}

SmallVector<Value> Scores::hide(const PositionBlock &at, Value pair, ArrayRef<Value> scores) {
  SmallVector<Value> masked;
  Value hidden = b.splat(hiddenScore(log2PerScore())), position;
  for (auto [number, score] : llvm::enumerate(scores)) {
    int64_t vectors = block / kLanes, i = number / vectors, v = number % vectors;
    if (v == 0)
      position = b.loadIndex(seen, b.add(pair, i));
    masked.push_back(
        arith::SelectOp::create(b, seenFrom(position, b.add(at.first, v * kLanes)), score, hidden));
  }
  return masked;
}

Value Scores::seenFrom(Value position, Value first) {
  // The row attends to lane i if first + i <= position, and, with a window, first + i > position -
  // window.
  Value past = b.maskOf(b.sub(b.add(position, 1), first));
  if (!spec.window)
    return past;
  Value forgotten = b.maskOf(b.sub(b.sub(b.add(position, 1), b.idx(*spec.window)), first));
  Value all = arith::ConstantOp::create(b, DenseElementsAttr::get(b.vec(b.getI1Type()), true));
  return arith::AndIOp::create(b, past, arith::XOrIOp::create(b, forgotten, all));
}

Value Scores::addDistance(Value part, Value score, Value pair, Value first) {
  memref::GlobalOp slopes = spec.slopes;
  Value table = memref::GetGlobalOp::create(b, slopes.getType(), slopes.getSymName());
  Value slope = b.load(table, b.add(b.mul(part, group), b.rem(pair, group)));
  Value position = b.loadIndex(seen, pair);
  Value distance = arith::IndexCastOp::create(b, b.getI32Type(), b.sub(first, position));
  SmallVector<int32_t> lanes(kLanes);
  std::iota(lanes.begin(), lanes.end(), 0);
  Value steps = arith::ConstantOp::create(
      b, DenseElementsAttr::get(b.vec(b.getI32Type()), ArrayRef<int32_t>(lanes)));
  Value distances = arith::SIToFPOp::create(b, b.vecF32(), b.add(b.broadcast(distance), steps));
  if (!spec.softcap)
    score = b.mulf(score, b.splat(static_cast<float>(spec.scale)));
  return b.fma(distances, b.broadcast(slope), score);
}

Value Scores::cap(Value score) {
  Value limit = b.splat(static_cast<float>(*spec.softcap));
  Value share = b.mulf(score, b.splat(static_cast<float>(spec.scale / *spec.softcap)));
  return b.mulf(limit, math::TanhOp::create(b, share));
}
