//===- HighLowRows.cpp - f32 rows as integers for byte dot products -------===//

#include "backends/cpu/kernels/attention/HighLowRows.h"

#include "backends/cpu/kernels/matmul/Prefetch.h"
#include "backends/cpu/kernels/rows/Int8Row.h"
#include "ir/Quantize/Quantize.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

HighLowRows::HighLowRows(KernelBuilder &b, int64_t rows, int64_t k, Signs signs)
    : b(b), k(k), signs(signs), bytes(b.stackBuffer({rows, kHalves * k}, b.getI8Type())),
      scales(b.stackBuffer({rows}, b.getF32Type())) {
  if (signs == Signs::Both)
    starts = b.stackBuffer({rows, kHalves}, b.getI32Type());
}

void HighLowRows::store(Value row, ArrayRef<Value> numbers) {
  Type i32 = b.getI32Type();
  Value largest = largestMagnitude(b, numbers);
  Value inverse = b.broadcast(b.divf(b.f32(unit()), b.maxf(largest, b.f32(kSmallestMagnitude))));
  b.store(b.divf(largest, b.f32(unit())), scales, row);
  auto round = [&](Value x) -> Value { return math::RoundEvenOp::create(b, x); };
  auto integer = [&](Value x) -> Value { return arith::FPToSIOp::create(b, b.vec(i32), x); };
  Value sums[kHalves] = {b.splatInt(0, i32), b.splatInt(0, i32)};
  for (auto [v, number] : llvm::enumerate(numbers)) {
    Value scaled = b.mulf(number, inverse), halves[kHalves];
    if (signs == Signs::Both) {
      Value high = round(scaled);
      halves[0] = integer(high);
      halves[1] = integer(round(b.mulf(b.subf(scaled, high), b.splat(ratio()))));
    } else {
      Value both = integer(round(b.mulf(scaled, b.splat(ratio()))));
      halves[0] = arith::ShRUIOp::create(b, both, b.splatInt(8, i32));
      halves[1] = both;
    }
    for (int64_t half = 0; half < kHalves; ++half) {
      sums[half] = b.add(sums[half], halves[half]);
      Value at = b.idx(half * k + static_cast<int64_t>(v) * kLanes);
      b.storeVector(arith::TruncIOp::create(b, b.vec(b.getI8Type()), halves[half]), bytes,
                    {row, at});
    }
  }
  if (signs == Signs::None)
    return;
  for (int64_t half = 0; half < kHalves; ++half) {
    Value sum = vector::ReductionOp::create(b, vector::CombiningKind::ADD, sums[half]);
    b.store(arith::MulIOp::create(b, sum, arith::ConstantIntOp::create(b, i32, -128)), starts,
            {row, b.idx(half)});
  }
}

Value HighLowRows::loadQuad(Value row, int64_t half, Value group) {
  Value at = b.add(b.mul(group, 4), half * k);
  return b.bitcast(b.broadcastFromBytes(bytes, {row, at}, b.getI32Type()), b.getI8Type());
}

SmallVector<Value> HighLowRows::multiply(const PackedPanel &panel, Value groups, Value first,
                                         int64_t count, Value column, int64_t vectors) {
  Type i8 = b.getI8Type(), i32 = b.getI32Type();
  constexpr int64_t kQuads = 4 * kLanes;
  bool shifted = signs == Signs::Both;
  SmallVector<Value> sums; // [rows][vectors][halves]
  for (int64_t i = 0; i < count; ++i) {
    Value init[kHalves];
    for (int64_t half = 0; half < kHalves; ++half)
      init[half] = shifted ? b.broadcast(b.load(starts, {b.add(first, i), b.idx(half)}))
                           : b.splatInt(0, i32);
    for (int64_t v = 0; v < vectors; ++v)
      sums.append(init, init + kHalves);
  }
  sums = b.carry(b.idx(0), groups, 1, sums, [&](Value group, ValueRange carried) {
    SmallVector<Value> next(carried), rows;
    prefetchAhead(b, panel, b.mul(group, 4 * panel.columns), 4 * panel.columns);
    for (int64_t i = 0; i < count; ++i)
      for (int64_t half = 0; half < kHalves; ++half)
        rows.push_back(loadQuad(b.add(first, i), half, group));
    for (int64_t v = 0; v < vectors; ++v) {
      Value inPanel = b.mul(b.add(b.add(b.mul(group, panel.columns), column), v * kLanes), 4);
      Value quads = b.loadRaw(panel.memory, b.add(panel.offset, inPanel), kQuads);
      if (shifted)
        quads = arith::XOrIOp::create(b, quads, b.splatInt(-128, i8, kQuads));
      for (auto [r, row] : llvm::enumerate(rows)) {
        Value &sum = next[(r / kHalves * vectors + v) * kHalves + r % kHalves];
        sum = shifted ? b.dotBytes(sum, quads, row) : b.dotBytes(sum, row, quads);
      }
    }
    return next;
  });
  SmallVector<Value> results;
  for (int64_t i = 0; i < count; ++i) {
    Value scale = b.broadcast(b.load(scales, b.add(first, i)));
    for (int64_t v = 0; v < vectors; ++v) {
      auto half = [&](int64_t number) -> Value {
        Value sum = sums[(i * vectors + v) * kHalves + number];
        return arith::SIToFPOp::create(b, b.vecF32(), sum);
      };
      results.push_back(b.mulf(b.fma(half(1), b.splat(1 / ratio()), half(0)), scale));
    }
  }
  return results;
}
