//===- Attention.cpp - attention over the caches --------------------------===//

#include "backends/cpu/kernels/attention/Attention.h"

#include "backends/cpu/kernels/attention/ChunkEmitter.h"

#include <numbers>

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// y[row, head] = the means of a state; `sinks` is null if there are none.
void storeMeans(KernelBuilder &b, const AttentionSpec &spec, SoftmaxStates &states, ValueRange at,
                Value sinks, Value y, Value row, Value head) {
  if (sinks)
    states.addScore(at, b.mulf(b.loadF32(sinks, head), b.f32(std::numbers::log2e_v<float>)));
  states.eachMean(at, spec.values.getHeadDim(), [&](Value column, Value live, Value mean) {
    b.storeVector(mean, y, {row, head, column}, live);
  });
}

Value isLess(KernelBuilder &b, Value x, Value y) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
}

/// Calls `body(first, rows)` for the runs of the rows [from, to).
void eachRun(KernelBuilder &b, ChunkEmitter &chunk, Value from, Value to,
             llvm::function_ref<void(Value, Value)> body) {
  b.whileLoop(from, to, [&](Value first) {
    Value next = b.add(first, 1);
    Value end =
        b.carry(next, to, 1, next, [&](Value row, ValueRange carried) -> SmallVector<Value> {
          Value reached = b.isEqual(carried[0], row);
          Value more = arith::AndIOp::create(b, reached, chunk.continuesRun(row));
          return {arith::SelectOp::create(b, more, b.add(row, 1), carried[0])};
        })[0];
    body(first, b.sub(end, first));
    return end;
  });
}

/// The tile of task `number` of `count`. Later tiles attend to more positions: first and last tiles
/// alternate, so that any range of tasks has about the same work per task.
Value tileOfTask(KernelBuilder &b, Value number, Value count) {
  Value half = b.div(number, 2), fromEnd = b.sub(b.sub(count, b.idx(1)), half);
  Value even = b.isEqual(b.rem(number, 2), b.idx(0));
  return arith::SelectOp::create(b, even, half, fromEnd);
}

} // namespace

void mica::cpu::emitAttention(KernelBuilder &b, ValueRange args, const AttentionSpec &spec) {
  ChunkEmitter chunk(b, args, spec);
  SoftmaxStates whole = chunk.makeStates();
  Value rows = memref::DimOp::create(b, args[2], 0), y = args.back();
  Value sinks = spec.sinks ? args[8] : Value();
  int64_t ofTile = spec.tiling.getRows();
  Value tiles = b.div(b.add(rows, ofTile - 1), ofTile);
  b.loop(args[0], args[1], 1, [&](Value task) {
    Value part = arith::DivUIOp::create(b, task, tiles);
    Value tile = tileOfTask(b, arith::RemUIOp::create(b, task, tiles), tiles);
    Value from = b.mul(tile, ofTile);
    Value to = arith::MinUIOp::create(b, b.add(from, ofTile), rows);
    eachRun(b, chunk, from, to, [&](Value first, Value count) {
      RowRun run = chunk.begin(part, first, count);
      chunk.eachPair(run, [&](Value pair, Value, Value) { whole.clear(pair); });
      Chunks chunks(b, spec);
      b.loop(chunks.first(run.firstPosition), chunks.end(run.lastPosition), 1, [&](Value number) {
        chunk.emit(run, number);
        chunk.eachPair(run,
                       [&](Value pair, Value, Value) { whole.merge(pair, chunk.states, pair); });
      });
      chunk.eachPair(run, [&](Value pair, Value row, Value queryHead) {
        storeMeans(b, spec, whole, pair, sinks, y, row, queryHead);
      });
    });
  });
}

void mica::cpu::emitAttentionChunks(KernelBuilder &b, ValueRange args, const AttentionSpec &spec) {
  ChunkEmitter chunk(b, args, spec);
  Chunks chunks(b, spec);
  Value rows = memref::DimOp::create(b, args[2], 0), maxCount = args[8],
        parts = args[args.size() - 2], y = args.back();
  Value sinks = spec.sinks ? args[9] : Value();
  SoftmaxStates partStates(b, parts, valuesOf(spec));
  b.loop(args[0], args[1], 1, [&](Value task) {
    // Rows are the innermost dimension: consecutive tasks read the same chunk of one sequence.
    Value row = arith::RemUIOp::create(b, task, rows), rest = arith::DivUIOp::create(b, task, rows);
    Value number = arith::RemUIOp::create(b, rest, maxCount);
    Value part = arith::DivUIOp::create(b, rest, maxCount);
    Value position = chunk.positionOf(row), count = chunks.count(position);
    b.when(isLess(b, number, count), [&] {
      RowRun run = chunk.begin(part, row, b.idx(1));
      chunk.emit(run, b.add(chunks.first(position), number));
      Value several = isLess(b, b.idx(1), count);
      chunk.eachPair(run, [&](Value pair, Value, Value queryHead) {
        b.either(
            several, [&] { partStates.copyFrom({row, number, queryHead}, chunk.states, pair); },
            [&] { storeMeans(b, spec, chunk.states, pair, sinks, y, row, queryHead); });
      });
    });
  });
}

void mica::cpu::emitAttentionCombine(KernelBuilder &b, ValueRange args, const AttentionSpec &spec) {
  Value positions = args[2], parts = args[3], y = args.back();
  Value sinks = spec.sinks ? args[4] : Value();
  Chunks chunks(b, spec);
  SoftmaxStates partStates(b, parts, valuesOf(spec));
  SoftmaxStates whole(b, b.stackBuffer({spec.stateWidth()}, b.getF32Type()), valuesOf(spec));
  b.loop(args[0], args[1], 1, [&](Value task) {
    Value row = b.div(task, spec.heads), head = b.rem(task, spec.heads);
    Value count = chunks.count(b.loadIndex(positions, row));
    b.when(isLess(b, b.idx(1), count), [&] {
      whole.clear({});
      b.loop(b.idx(0), count, 1,
             [&](Value number) { whole.merge({}, partStates, {row, number, head}); });
      storeMeans(b, spec, whole, {}, sinks, y, row, head);
    });
  });
}

Value mica::cpu::emitChunkCount(KernelBuilder &b, Value position, const AttentionSpec &spec) {
  return Chunks(b, spec).count(position);
}
