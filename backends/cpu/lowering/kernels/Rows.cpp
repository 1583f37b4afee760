//===- Rows.cpp - kernels that work row by row ----------------------------------===//

#include "backends/cpu/lowering/kernels/Kernels.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Calls `body(prefix)` for the innermost rows of `buffer` in the tasks [begin, end): the index of
/// a row, or of a row and a head.
static void eachInnerRow(KernelBuilder &b, ValueRange args, Value buffer,
                         llvm::function_ref<void(ArrayRef<Value>)> body) {
  auto type = cast<MemRefType>(buffer.getType());
  b.loop(args[0], args[1], 1, [&](Value row) {
    if (type.getRank() == 2)
      return body(row);
    b.loop(type.getDimSize(1), [&](Value head) { body({row, head}); });
  });
}

static SmallVector<Value> at(ArrayRef<Value> prefix, Value column) {
  SmallVector<Value> index(prefix);
  index.push_back(column);
  return index;
}

static int64_t columnsOf(Value buffer) {
  return cast<MemRefType>(buffer.getType()).getShape().back();
}

void mica::cpu::emitRmsNorm(KernelBuilder &b, ValueRange args, const RmsNormSpec &spec) {
  Value x = args[2], gain = args[3], y = args[4];
  int64_t columns = columnsOf(x);
  eachInnerRow(b, args, x, [&](ArrayRef<Value> row) {
    Value squares = b.eachVector(columns, b.splat(0), [&](Value column, Value live, Value sum) {
      Value values = b.loadVector(x, at(row, column), live);
      return b.fma(values, values, sum);
    });
    Value scale = b.inverseRootOfMean(squares, columns, spec.eps);
    b.eachVector(columns, [&](Value column, Value live) {
      Value normal = b.mulf(b.loadVector(x, at(row, column), live), scale);
      if (spec.roundBeforeGain)
        normal = b.toF32(b.fromF32(normal, b.elementOf(x)));
      Value factor = b.loadVector(gain, column, live);
      if (spec.gainOffset != 0)
        factor = b.addf(factor, b.splat(static_cast<float>(spec.gainOffset)));
      b.storeVector(b.mulf(normal, factor), y, at(row, column), live);
    });
  });
}

void mica::cpu::emitLayerNorm(KernelBuilder &b, ValueRange args, double eps, bool bias) {
  Value x = args[2], gain = args[3], y = args.back();
  int64_t columns = columnsOf(x);
  eachInnerRow(b, args, x, [&](ArrayRef<Value> row) {
    Value sum = b.eachVector(columns, b.splat(0), [&](Value column, Value live, Value carried) {
      return b.addf(carried, b.loadVector(x, at(row, column), live));
    });
    Value mean = b.broadcast(b.mulf(b.reduceAdd(sum), b.f32(1.0f / static_cast<float>(columns))));
    // Lanes behind the row would count the mean's square: they are masked to the mean itself.
    auto centred = [&](Value column, Value live) {
      Value difference = b.subf(b.loadVector(x, at(row, column), live), mean);
      return live ? arith::SelectOp::create(b, b.maskOf(live), difference, b.splat(0)).getResult()
                  : difference;
    };
    Value squares = b.eachVector(columns, b.splat(0), [&](Value column, Value live, Value carried) {
      Value difference = centred(column, live);
      return b.fma(difference, difference, carried);
    });
    Value scale = b.inverseRootOfMean(squares, columns, eps);
    b.eachVector(columns, [&](Value column, Value live) {
      Value result = b.mulf(b.mulf(centred(column, live), scale), b.loadVector(gain, column, live));
      if (bias)
        result = b.addf(result, b.loadVector(args[4], column, live));
      b.storeVector(result, y, at(row, column), live);
    });
  });
}

void mica::cpu::emitElementwise(
    KernelBuilder &b, ValueRange args,
    llvm::function_ref<Value(KernelBuilder &, ArrayRef<Value>)> compute) {
  Value y = args.back();
  ValueRange inputs = args.drop_front(2).drop_back();
  eachInnerRow(b, args, y, [&](ArrayRef<Value> row) {
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      SmallVector<Value> values;
      for (Value input : inputs)
        values.push_back(b.loadVector(input, at(row, column), live));
      b.storeVector(compute(b, values), y, at(row, column), live);
    });
  });
}

void mica::cpu::emitGlu(KernelBuilder &b, ValueRange args, Activation activation) {
  Value x = args[2], y = args[3];
  eachInnerRow(b, args, y, [&](ArrayRef<Value> row) {
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      // Column c of y belongs to block c / 64: its gate stands in block 2 (c / 64) of x, its up in
      // the next.
      Value gateColumn = b.add(column, b.mul(b.div(column, kBlockColumns), kBlockColumns));
      Value gate = b.loadVector(x, at(row, gateColumn)),
            up = b.loadVector(x, at(row, b.add(gateColumn, kBlockColumns)));
      b.storeVector(b.mulf(emitActivation(b, gate, activation), up), y, at(row, column), live);
    });
  });
}

void mica::cpu::emitSelectRows(KernelBuilder &b, ValueRange args) {
  Value x = args[2], rows = args[3], y = args[4];
  b.loop(args[0], args[1], 1, [&](Value row) {
    Value source = b.loadIndex(rows, row);
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      b.storeVector(b.loadVector(x, {source, column}, live), y, {row, column}, live);
    });
  });
}

void mica::cpu::emitAddBias(KernelBuilder &b, ValueRange args) {
  Value bias = args[2], y = args[3];
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      Value sum = b.addf(b.loadVector(y, {row, column}, live), b.loadVector(bias, column, live));
      b.storeVector(sum, y, {row, column}, live);
    });
  });
}

void mica::cpu::emitEmbedding(KernelBuilder &b, ValueRange args) {
  Value tokens = args[2], table = args[3], y = args[4];
  auto type = cast<MemRefType>(table.getType());
  int64_t columns = columnsOf(y);
  b.loop(args[0], args[1], 1, [&](Value row) {
    Value token = b.loadIndex(tokens, row);
    if (type.getRank() == 2) {
      b.eachVector(columns, [&](Value column, Value live) {
        b.storeVector(b.loadVector(table, {token, column}, live), y, {row, column}, live);
      });
      return;
    }
    // A row of a packed table is scattered over its block: one element of every group of `depth`
    // x 64.
    int64_t depth = type.getDimSize(3);
    Value block = b.div(token, kBlockColumns), lane = b.rem(token, kBlockColumns);
    b.loop(columns, [&](Value column) {
      Value element = b.loadF32(table, {block, b.div(column, depth), lane, b.rem(column, depth)});
      b.storeF32(element, y, {row, column});
    });
  });
}

Value mica::cpu::emitActivation(KernelBuilder &b, Value x, Activation activation) {
  auto constant = [&](float value) { return b.splat(value); };
  switch (activation) {
  case Activation::Silu:
    return b.divf(x, b.addf(constant(1), b.exp(b.subf(constant(0), x))));
  case Activation::Relu:
    return b.maxf(x, constant(0));
  case Activation::Gelu: {
    Value error = math::ErfOp::create(b, b.mulf(x, constant(0.70710678118654752f)));
    return b.mulf(b.mulf(x, constant(0.5f)), b.addf(constant(1), error));
  }
  case Activation::GeluTanh: {
    Value cube = b.mulf(b.mulf(x, x), x);
    Value inner = b.mulf(constant(0.79788456080286536f), b.fma(cube, constant(0.044715f), x));
    return b.mulf(b.mulf(x, constant(0.5f)), b.addf(constant(1), math::TanhOp::create(b, inner)));
  }
  }
  llvm_unreachable("all activations are handled above");
}
