//===- Int8Row.cpp - quantization of rows to 8-bit integers ---------------===//

#include "backends/cpu/kernels/rows/Int8Row.h"

#include "ir/Quantize/Quantize.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

// Magnitudes are compared as integers: their order is the same, and a NaN, which a float comparison
// would lose, is the maximum.

static Value largerMagnitudes(KernelBuilder &b, Value sofar, Value numbers) {
  Type i32 = b.getI32Type();
  Value bits = arith::AndIOp::create(b, b.bitcast(numbers, i32), b.splatInt(0x7fffffff, i32));
  return arith::MaxSIOp::create(b, sofar, bits);
}

static Value largestOf(KernelBuilder &b, Value magnitudes) {
  Value bits = vector::ReductionOp::create(b, vector::CombiningKind::MAXSI, magnitudes);
  return arith::BitcastOp::create(b, b.getF32Type(), bits);
}

Value mica::cpu::largestMagnitude(KernelBuilder &b, ArrayRef<Value> vectors) {
  Value magnitudes = b.splatInt(0, b.getI32Type());
  for (Value vector : vectors)
    magnitudes = largerMagnitudes(b, magnitudes, vector);
  return largestOf(b, magnitudes);
}

IntegerScale::IntegerScale(KernelBuilder &b, Value largest, float limit)
    : scale(b.divf(largest, b.f32(limit))),
      // Zeros are quantized to 0 whatever the divisor.
      inverse(b.broadcast(b.divf(b.f32(limit), b.maxf(largest, b.f32(kSmallestMagnitude))))) {}

Value IntegerScale::integersOf(KernelBuilder &b, Value numbers) const {
  Value scaled = math::RoundEvenOp::create(b, b.mulf(numbers, inverse));
  return arith::FPToSIOp::create(b, b.vec(b.getI32Type()), scaled);
}

Int8Row::Int8Row(KernelBuilder &b, int64_t columns, Compute compute) : b(b), compute(compute) {
  Value maximum =
      largestOf(b, b.eachVector(columns, b.splatInt(0, b.getI32Type()),
                                [&](Value column, Value live, Value sofar) {
                                  return largerMagnitudes(b, sofar, values(column, live));
                                }));
  integer.emplace(b, maximum);
  scale = integer->scale;
}

Value Int8Row::values(Value column, Value live) const {
  Value result = compute(column, live);
  return live ? arith::SelectOp::create(b, b.maskOf(live), result, b.splat(0)).getResult() : result;
}

Value Int8Row::integers(Value column, Value live) const {
  return integer->integersOf(b, values(column, live));
}

void mica::cpu::storeAsBytes(KernelBuilder &b, Value number, Value buffer, ValueRange at) {
  b.storeVector(b.bitcast(b.broadcast(number, 1), b.getI8Type()), buffer, at);
}
