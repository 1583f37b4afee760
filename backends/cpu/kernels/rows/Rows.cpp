//===- Rows.cpp - kernels that process single rows ------------------------===//

#include "backends/cpu/kernels/rows/Rows.h"

#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/IntegerRows.h"
#include "backends/cpu/kernels/rows/Int8Row.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Calls `body(prefix)` for the innermost rows of `buffer` in the tasks [begin, end), with the
/// index of a row, or of a row and a head.
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

using ComputeRow = llvm::function_ref<Value(Value column, Value live)>;

/// Calls `body(first, lives)` for each group of an integer row, including padding. `lives` contains
/// the number of live lanes of each vector, null for none; it is empty for a complete group.
static void eachGroup(KernelBuilder &b, int64_t columns, int64_t padded,
                      llvm::function_ref<void(Value, ArrayRef<Value>)> body) {
  constexpr int64_t kGroup = IntegerRowLayout::group;
  int64_t whole = columns / kGroup * kGroup;
  b.loop(b.idx(0), b.idx(whole), kGroup, [&](Value first) { body(first, {}); });
  // The rest of the row, and padding.
  for (int64_t first = whole; first < padded; first += kGroup) {
    SmallVector<Value> lives;
    for (int64_t column = first; column < first + kGroup; column += kLanes)
      lives.push_back(column < columns ? b.idx(std::min(columns - column, kLanes)) : Value());
    body(b.idx(first), lives);
  }
}

/// 16 integers of a row as bytes.
static Value bytesOf(KernelBuilder &b, Value q) {
  return arith::TruncIOp::create(b, b.vec(b.getI8Type()), q);
}

/// 16 integers of a row as words, in the order of wordOfRow.
static Value wordsOf(KernelBuilder &b, Value q) {
  Value words = arith::TruncIOp::create(b, b.vec(b.getI16Type()), q);
  SmallVector<int64_t> order;
  for (int64_t i = 0; i < kLanes; ++i)
    order.push_back(wordOfRow(i));
  return b.bitcast(vector::ShuffleOp::create(b, words, words, order), b.getI8Type());
}

/// Stores a row of !mica.int_rows: every group of 32 elements has a scale.
static void storeIntRow(KernelBuilder &b, Value y, ArrayRef<Value> row, int64_t columns,
                        int64_t rowBits, ComputeRow compute) {
  static_assert(IntegerRowLayout::sumGroup == kLanes);
  IntegerRowLayout parts(rowBits, columns);
  Type i32 = b.getI32Type();
  eachGroup(b, columns, parts.padded, [&](Value first, ArrayRef<Value> lives) {
    SmallVector<Value> numbers(IntegerRowLayout::group / kLanes, b.splat(0));
    for (auto [v, vector] : llvm::enumerate(numbers)) {
      Value column = b.add(first, static_cast<int64_t>(v) * kLanes);
      if (lives.empty())
        vector = compute(column, {});
      else if (Value live = lives[v])
        vector = arith::SelectOp::create(b, b.maskOf(live), compute(column, live), vector);
    }
    IntegerScale scale(b, largestMagnitude(b, numbers), IntegerRowLayout::limitOf(rowBits));
    Value entry = b.mul(b.div(first, IntegerRowLayout::group), 4);
    storeAsBytes(b, scale.scale, y, at(row, b.add(entry, parts.scales)));
    for (auto [v, vector] : llvm::enumerate(numbers)) {
      Value q = scale.integersOf(b, vector), high = q;
      Value column = b.add(first, static_cast<int64_t>(v) * kLanes);
      if (b.hasWords(rowBits)) {
        b.storeVector(wordsOf(b, q), y, at(row, b.mul(column, 2)));
      } else {
        if (rowBits == 16) { // q = 256 high + low, both signed
          b.storeVector(bytesOf(b, q), y, at(row, b.add(column, parts.padded)));
          high = arith::ShRSIOp::create(b, b.add(q, b.splatInt(128, i32)), b.splatInt(8, i32));
        }
        b.storeVector(bytesOf(b, high), y, at(row, column));
      }
      Value sum = vector::ReductionOp::create(b, vector::CombiningKind::ADD, q);
      sum = b.sub(arith::ConstantIntOp::create(b, i32, 0), sum);
      Value index = b.mul(b.div(column, IntegerRowLayout::sumGroup), 4);
      storeAsBytes(b, sum, y, at(row, b.add(index, parts.sums)));
    }
  });
}

/// Stores a row of `columns` elements of y; `compute(column, live)` returns 16 of them. `rowBits`
/// is that of !mica.int_rows, 0 for other types.
static void storeRow(KernelBuilder &b, Value y, ArrayRef<Value> row, int64_t columns,
                     int64_t rowBits, ComputeRow compute) {
  if (rowBits != 0)
    return storeIntRow(b, y, row, columns, rowBits, compute);
  b.eachVector(columns, [&](Value column, Value live) {
    b.storeVector(compute(column, live), y, at(row, column), live);
  });
}

/// Loads 16 elements of a norm weight or a bias [N], or [H, D] with a row per head.
static Value loadNormVector(KernelBuilder &b, Value weight, ArrayRef<Value> row, Value column,
                            Value live) {
  bool ofHeads = cast<MemRefType>(weight.getType()).getRank() == 2;
  return b.loadVector(weight, ofHeads ? at(row.back(), column) : SmallVector<Value>{column}, live);
}

void mica::cpu::emitQuantize(KernelBuilder &b, ValueRange args, int64_t rowBits) {
  Value x = args[2], y = args[3];
  eachInnerRow(b, args, x, [&](ArrayRef<Value> row) {
    storeRow(b, y, row, columnsOf(x), rowBits,
             [&](Value column, Value live) { return b.loadVector(x, at(row, column), live); });
  });
}

void mica::cpu::emitRmsNorm(KernelBuilder &b, ValueRange args, const RmsNormSpec &spec) {
  Value x = args[2], weight = args[3], y = args[4];
  int64_t columns = columnsOf(x);
  eachInnerRow(b, args, x, [&](ArrayRef<Value> row) {
    Value squares = b.eachVector(columns, b.splat(0), [&](Value column, Value live, Value sum) {
      Value values = b.loadVector(x, at(row, column), live);
      return b.fma(values, values, sum);
    });
    Value scale = b.inverseRootOfMean(squares, columns, spec.eps);
    storeRow(b, y, row, columns, spec.rowBits, [&](Value column, Value live) {
      Value normal = b.mulf(b.loadVector(x, at(row, column), live), scale);
      if (spec.roundBeforeWeight)
        normal = b.toF32(b.fromF32(normal, b.elementOf(x)));
      Value factor = loadNormVector(b, weight, row, column, live);
      if (spec.weightOffset != 0)
        factor = b.addf(factor, b.splat(static_cast<float>(spec.weightOffset)));
      // Rounded to the type of x, even if the result of a fused cast has another type.
      return b.toF32(b.fromF32(b.mulf(normal, factor), b.elementOf(x)));
    });
  });
}

void mica::cpu::emitL2Norm(KernelBuilder &b, ValueRange args, double eps) {
  Value x = args[2], y = args[3];
  int64_t columns = columnsOf(x);
  eachInnerRow(b, args, x, [&](ArrayRef<Value> row) {
    Value squares = b.eachVector(columns, b.splat(0), [&](Value column, Value live, Value sum) {
      Value values = b.loadVector(x, at(row, column), live);
      return b.fma(values, values, sum);
    });
    Value scale = b.inverseRootOfMean(squares, /*count=*/1, eps);
    b.eachVector(columns, [&](Value column, Value live) {
      b.storeVector(b.mulf(b.loadVector(x, at(row, column), live), scale), y, at(row, column),
                    live);
    });
  });
}

void mica::cpu::emitLayerNorm(KernelBuilder &b, ValueRange args, double eps, bool bias,
                              int64_t rowBits) {
  Value x = args[2], weight = args[3], y = args.back();
  int64_t columns = columnsOf(x);
  eachInnerRow(b, args, x, [&](ArrayRef<Value> row) {
    Value sum = b.eachVector(columns, b.splat(0), [&](Value column, Value live, Value carried) {
      return b.addf(carried, b.loadVector(x, at(row, column), live));
    });
    Value mean = b.broadcast(b.mulf(b.reduceAdd(sum), b.f32(1.0f / static_cast<float>(columns))));
    // Lanes after the row would add the square of the mean: they are set to the mean.
    auto centered = [&](Value column, Value live) {
      Value difference = b.subf(b.loadVector(x, at(row, column), live), mean);
      return live ? arith::SelectOp::create(b, b.maskOf(live), difference, b.splat(0)).getResult()
                  : difference;
    };
    Value squares = b.eachVector(columns, b.splat(0), [&](Value column, Value live, Value carried) {
      Value difference = centered(column, live);
      return b.fma(difference, difference, carried);
    });
    Value scale = b.inverseRootOfMean(squares, columns, eps);
    storeRow(b, y, row, columns, rowBits, [&](Value column, Value live) {
      Value result = b.mulf(b.mulf(centered(column, live), scale),
                            loadNormVector(b, weight, row, column, live));
      return bias ? b.addf(result, loadNormVector(b, args[4], row, column, live)) : result;
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

void mica::cpu::emitScaleParts(KernelBuilder &b, ValueRange args, ArrayRef<double> factors,
                               ArrayRef<int64_t> widths) {
  Value x = args[2], y = args[3];
  b.loop(args[0], args[1], 1, [&](Value row) {
    int64_t first = 0;
    for (auto [factor, width] : llvm::zip_equal(factors, widths)) {
      b.eachVector(width, [&](Value column, Value live) {
        Value at = b.add(column, first);
        Value scaled =
            b.mulf(b.loadVector(x, {row, at}, live), b.splat(static_cast<float>(factor)));
        b.storeVector(scaled, y, {row, at}, live);
      });
      first += width;
    }
  });
}

void mica::cpu::emitSigmoidGate(KernelBuilder &b, ValueRange args) {
  Value x = args[2], gate = args[3], y = args[4];
  auto divisorOf = [&](Value number) {
    return b.addf(b.splat(1), b.exp(b.subf(b.splat(0), number)));
  };
  bool ofRows = columnsOf(gate) == 1;
  b.loop(args[0], args[1], 1, [&](Value row) {
    Value ofRow = ofRows ? divisorOf(b.broadcast(b.loadF32(gate, {row, b.idx(0)}))) : Value();
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      Value divisor = ofRows ? ofRow : divisorOf(b.loadVector(gate, {row, column}, live));
      b.storeVector(b.divf(b.loadVector(x, {row, column}, live), divisor), y, {row, column}, live);
    });
  });
}

/// y[t, h] = compute(x[t, h], vector[h]).
static void emitWithVector(KernelBuilder &b, ValueRange args,
                           llvm::function_ref<Value(Value, Value)> compute) {
  Value x = args[2], vector = args[3], y = args[4];
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      Value values = b.loadVector(x, {row, column}, live);
      b.storeVector(compute(values, b.loadVector(vector, column, live)), y, {row, column}, live);
    });
  });
}

void mica::cpu::emitSoftplus(KernelBuilder &b, ValueRange args) {
  emitWithVector(b, args, [&](Value x, Value bias) {
    // log(1 + exp(s)) = max(s, 0) + log(1 + exp(-|s|)), which does not overflow.
    Value sum = b.addf(x, bias), negative = b.subf(b.splat(0), sum);
    Value small = b.exp(b.minf(sum, negative));
    return b.addf(b.maxf(sum, b.splat(0)), math::Log1pOp::create(b, small));
  });
}

void mica::cpu::emitDecay(KernelBuilder &b, ValueRange args) {
  emitWithVector(b, args, [&](Value dt, Value rate) {
    return b.exp(b.subf(b.splat(0), b.mulf(b.exp(rate), dt)));
  });
}

void mica::cpu::emitScaleHeads(KernelBuilder &b, ValueRange args) {
  Value x = args[2], factors = args[3], y = args[4];
  bool ofRows = cast<MemRefType>(factors.getType()).getRank() == 2;
  eachInnerRow(b, args, x, [&](ArrayRef<Value> row) {
    Value factor = b.broadcast(b.loadF32(factors, ofRows ? row : row.drop_front()));
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      b.storeVector(b.mulf(factor, b.loadVector(x, at(row, column), live)), y, at(row, column),
                    live);
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

void mica::cpu::emitSelectHead(KernelBuilder &b, ValueRange args) {
  Value x = args[2], head = args[3], y = args[4];
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      b.storeVector(b.loadVector(x, {row, head, column}, live), y, {row, column}, live);
    });
  });
}

/// Gathers a row of a packed table, which is scattered over its block: a group of `depth` x 64 at a
/// time.
static void gatherPackedRow(KernelBuilder &b, Value table, Value token, Value y, Value row) {
  int64_t depth = cast<MemRefType>(table.getType()).getDimSize(3);
  Value block = b.div(token, kBlockColumns), lane = b.rem(token, kBlockColumns);
  b.loop(columnsOf(y), [&](Value column) {
    Value element = b.loadF32(table, {block, b.div(column, depth), lane, b.rem(column, depth)});
    b.storeF32(element, y, {row, column});
  });
}

/// Gathers a row of a block-quantized table. Its neighbors share its cache lines and are decoded
/// with it: `decoded` has memory for a chunk of 16 rows.
static void gatherBlockRow(KernelBuilder &b, Value table, const WeightSpec &spec, Value token,
                           Value y, Value row, Value decoded) {
  constexpr int64_t kChunk = PackedBlocks::kChunk;
  BlockReader reader(b, weightPanel(b, table, b.div(token, kBlockColumns), spec));
  Value inBlock = b.rem(token, kBlockColumns), lane = b.rem(inBlock, kLanes),
        column = b.sub(inBlock, lane);
  int64_t perBlock = reader.packed.chunks, whole = spec.k / kChunk;
  auto gather = [&](Value chunk, int64_t count) {
    Value block = reader.blockAt(b.div(chunk, perBlock));
    Value scales = reader.loadScales(block, column), offsets = reader.loadOffsets(block, column);
    reader.eachElement(
        scales, offsets, reader.chunkAt(block, b.rem(chunk, perBlock)), column,
        [&](int64_t i, Value values) { b.storeVector(values, decoded, {b.idx(i), b.idx(0)}); });
    Value first = b.mul(chunk, kChunk);
    b.loop(count,
           [&](Value i) { b.storeF32(b.load(decoded, {i, lane}), y, {row, b.add(first, i)}); });
  };
  b.loop(whole, [&](Value chunk) { gather(chunk, kChunk); });
  if (spec.k % kChunk != 0)
    gather(b.idx(whole), spec.k % kChunk);
}

void mica::cpu::emitEmbedding(KernelBuilder &b, ValueRange args, const WeightSpec &spec) {
  Value tokens = args[2], table = args[3], y = args[4], decoded;
  if (spec.blocks())
    decoded = b.stackBuffer({PackedBlocks::kChunk, kLanes}, b.getF32Type());
  b.loop(args[0], args[1], 1, [&](Value row) {
    Value token = b.loadIndex(tokens, row);
    if (decoded)
      return gatherBlockRow(b, table, spec, token, y, row, decoded);
    if (cast<MemRefType>(table.getType()).getRank() > 2)
      return gatherPackedRow(b, table, token, y, row);
    b.eachVector(columnsOf(y), [&](Value column, Value live) {
      b.storeVector(b.loadVector(table, {token, column}, live), y, {row, column}, live);
    });
  });
}
