//===- Softmax.cpp - online softmax ---------------------------------------===//

#include "backends/cpu/kernels/attention/Softmax.h"

using namespace mlir;
using namespace mica::cpu;

/// The initial maximum: far less than any score, far greater than masked scores.
static constexpr float kNothing = -1.0e20f, kHidden = -1.0e30f;

float mica::cpu::hiddenScore(float log2PerScore) {
  return std::max(kHidden / log2PerScore, -3.0e38f);
}

Value mica::cpu::emitExp2(KernelBuilder &b, Value x) {
  auto bitsOf = [&](Value value) {
    return vector::BitCastOp::create(b, b.vec(b.getI32Type()), value);
  };
  // Adding 1.5 * 2^23 rounds to an integer n, which is then in the low bits.
  Value shifter = b.splat(0x1.8p23f);
  x = b.maxf(b.splat(-127.0f), x);
  Value shifted = b.addf(x, shifter);
  Value rest = b.subf(x, b.subf(shifted, shifter));
  // 2^rest on [-1/2, 1/2]: the polynomial of degree 5 with the minimum relative error among those
  // that are 1 at 0, computed by Remez' exchange on (1 + r q(r)) / 2^r - 1, which alternates six
  // times between +-4.31e-7. It is 4.33e-7 with coefficients rounded to f32; the arithmetic adds at
  // most 1e-7. Weights are rounded to 2^-9 if values are bf16; in f32, the error of a score of 16
  // that is rounded to f32 is as large.
  constexpr float coefficients[] = {0x1.23a604p-10f, 0x1.3cbea8p-7f, 0x1.c74322p-5f,
                                    0x1.ebfa4ep-3f,  0x1.62e39ep-1f, 1.0f};
  Value power = b.splat(coefficients[0]);
  for (float coefficient : llvm::drop_begin(coefficients))
    power = b.fma(power, rest, b.splat(coefficient));
  // n is added to the exponent; -127 results in zero.
  Value exponent = arith::ShLIOp::create(
      b, bitsOf(shifted),
      arith::ConstantOp::create(b, DenseElementsAttr::get(b.vec(b.getI32Type()), APInt(32, 23))));
  return vector::BitCastOp::create(b, b.vecF32(),
                                   arith::AddIOp::create(b, bitsOf(power), exponent));
}

void SoftmaxStates::clear(ValueRange at) {
  b.loop(b.idx(0), b.idx(values + kLanes), kLanes,
         [&](Value column) { b.storeVector(b.splat(0), buffer, place(at, column)); });
  b.store(b.f32(kNothing), buffer, maximumAt(at));
}

void SoftmaxStates::copyFrom(ValueRange at, const SoftmaxStates &other, ValueRange otherAt) {
  b.loop(b.idx(0), b.idx(widthFor(values)), kLanes, [&](Value column) {
    b.storeVector(b.loadVector(other.buffer, other.place(otherAt, column)), buffer,
                  place(at, column));
  });
}

void SoftmaxStates::merge(ValueRange at, const SoftmaxStates &other, ValueRange otherAt) {
  Value mine = b.load(buffer, maximumAt(at)),
        theirs = b.load(other.buffer, other.maximumAt(otherAt));
  Value maximum = b.maxf(mine, theirs);
  Value myFactor = emitExp2(b, b.broadcast(b.subf(mine, maximum)));
  Value theirFactor = emitExp2(b, b.broadcast(b.subf(theirs, maximum)));
  b.store(maximum, buffer, maximumAt(at));
  // The totals are stored after the sums.
  b.loop(b.idx(0), b.idx(values + kLanes), kLanes, [&](Value column) {
    Value sum = b.mulf(loadSum(at, column), myFactor);
    storeSum(b.fma(other.loadSum(otherAt, column), theirFactor, sum), at, column);
  });
}

Value SoftmaxStates::raiseMaximum(ValueRange at, ArrayRef<Value> scores, float log2PerScore) {
  Value highest = scores.front();
  for (Value score : scores.drop_front())
    highest = b.maxf(highest, score);
  Value before = b.load(buffer, maximumAt(at));
  Value maximum = b.maxf(before, b.mulf(b.reduceMax(highest), b.f32(log2PerScore)));
  b.store(maximum, buffer, maximumAt(at));
  return b.subf(before, maximum);
}

SmallVector<Value> SoftmaxStates::addWeights(ValueRange at, ArrayRef<Value> scores,
                                             float log2PerScore, Value correction) {
  Value maximum = b.load(buffer, maximumAt(at));
  Value shift = b.broadcast(b.subf(b.f32(0), maximum)), factor = b.splat(log2PerScore);
  Value totals = b.mulf(b.loadVector(buffer, totalsAt(at)), correction);
  SmallVector<Value> weights;
  for (Value score : scores) {
    weights.push_back(emitExp2(b, b.fma(score, factor, shift)));
    totals = b.addf(totals, weights.back());
  }
  b.storeVector(totals, buffer, totalsAt(at));
  return weights;
}

void SoftmaxStates::addScore(ValueRange at, Value log2Score) {
  Value before = b.load(buffer, maximumAt(at)), maximum = b.maxf(before, log2Score);
  Value correction = emitExp2(b, b.broadcast(b.subf(before, maximum)));
  Value weight = emitExp2(b, b.broadcast(b.subf(log2Score, maximum)));
  b.store(maximum, buffer, maximumAt(at));
  b.loop(b.idx(0), b.idx(values), kLanes,
         [&](Value column) { storeSum(b.mulf(loadSum(at, column), correction), at, column); });
  // Added to one lane of the totals.
  Value totals = b.mulf(b.loadVector(buffer, totalsAt(at)), correction);
  Value own = arith::SelectOp::create(b, b.maskOf(b.idx(1)), weight, b.splat(0));
  b.storeVector(b.addf(totals, own), buffer, totalsAt(at));
}

void SoftmaxStates::eachMean(ValueRange at, int64_t columns,
                             llvm::function_ref<void(Value, Value, Value)> store) {
  Value total = b.reduceAdd(b.loadVector(buffer, totalsAt(at)));
  // Zero if there are no positions.
  Value some = arith::CmpFOp::create(b, arith::CmpFPredicate::UNE, total, b.f32(0));
  Value inverse = arith::SelectOp::create(b, some, b.divf(b.f32(1), total), b.f32(0));
  Value factor = b.broadcast(inverse);
  b.eachVector(columns, [&](Value column, Value live) {
    store(column, live, b.mulf(loadSum(at, column), factor));
  });
}
