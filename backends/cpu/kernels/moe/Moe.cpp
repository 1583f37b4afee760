//===- Moe.cpp - gates and experts ----------------------------------------===//

#include "backends/cpu/kernels/moe/Moe.h"

#include "backends/cpu/kernels/matmul/BlockSums.h"
#include "backends/cpu/kernels/matmul/Products.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Computes scores [E, padded to whole vectors] from a row of logits.
static void emitScores(KernelBuilder &b, Value logits, Value row, Value scores,
                       const GateSpec &spec) {
  Value one = b.splat(1), zero = b.splat(0);
  if (spec.scoring == Scoring::Sigmoid) {
    b.eachVector(spec.experts, [&](Value column, Value live) {
      Value x = b.loadVector(logits, {row, column}, live);
      b.storeVector(b.divf(one, b.addf(one, b.exp(b.subf(zero, x)))), scores, column);
    });
    return;
  }
  Value smallest = b.splat(-std::numeric_limits<float>::max());
  Value maxima = b.eachVector(spec.experts, smallest, [&](Value column, Value live, Value maximum) {
    Value x = b.loadVector(logits, {row, column}, live);
    if (live)
      x = arith::SelectOp::create(b, b.maskOf(live), x, smallest);
    return b.maxf(maximum, x);
  });
  Value maximum = b.broadcast(b.reduceMax(maxima));
  Value sums = b.eachVector(spec.experts, zero, [&](Value column, Value live, Value sum) {
    Value score = b.exp(b.subf(b.loadVector(logits, {row, column}, live), maximum));
    if (live)
      score = arith::SelectOp::create(b, b.maskOf(live), score, zero);
    b.storeVector(score, scores, column);
    return b.addf(sum, score);
  });
  Value total = b.broadcast(b.reduceAdd(sums));
  b.eachVector(spec.experts, [&](Value column, Value) {
    b.storeVector(b.divf(b.loadVector(scores, column), total), scores, column);
  });
}

/// The maximum of numbers[begin .. begin + count) and its index, the first one if there are
/// several.
static std::pair<Value, Value> emitBest(KernelBuilder &b, Value numbers, Value begin,
                                        int64_t count) {
  Value none = b.f32(-std::numeric_limits<float>::max());
  SmallVector<Value> best = b.carry(begin, b.add(begin, count), 1, {none, begin},
                                    [&](Value e, ValueRange found) -> SmallVector<Value> {
                                      Value number = b.load(numbers, e);
                                      // Strictly greater: the lower index wins a tie.
                                      Value better = arith::CmpFOp::create(
                                          b, arith::CmpFPredicate::OGT, number, found[0]);
                                      return {arith::SelectOp::create(b, better, number, found[0]),
                                              arith::SelectOp::create(b, better, e, found[1])};
                                    });
  return {best[0], best[1]};
}

/// Excludes the experts outside of the best groups.
static void emitGroups(KernelBuilder &b, Value choices, const GateSpec &spec) {
  Value none = b.f32(-std::numeric_limits<float>::max());
  int64_t size = spec.experts / spec.groups;
  Value scores = b.stackBuffer({spec.groups}, b.getF32Type()),
        kept = b.stackBuffer({spec.groups}, b.getI32Type());
  auto flag = [&](int64_t value) { return arith::ConstantIntOp::create(b, b.getI32Type(), value); };
  b.loop(spec.groups, [&](Value group) {
    Value begin = b.mul(group, size);
    auto [score, best] = emitBest(b, choices, begin, size);
    if (spec.groupScoring == GroupScoring::BestTwo) {
      b.store(none, choices, best);
      Value second = emitBest(b, choices, begin, size).first;
      b.store(score, choices, best);
      score = b.addf(score, second);
    }
    b.store(score, scores, group);
    b.store(flag(0), kept, group);
  });
  b.loop(spec.topkGroup, [&](Value) {
    Value best = emitBest(b, scores, b.idx(0), spec.groups).second;
    b.store(flag(1), kept, best);
    b.store(none, scores, best);
  });
  b.loop(spec.experts, [&](Value e) {
    b.when(b.isEqual(b.load(kept, b.div(e, size)), flag(0)), [&] { b.store(none, choices, e); });
  });
}

void mica::cpu::emitGate(KernelBuilder &b, ValueRange args, const GateSpec &spec) {
  Value logits = args[2], weights = args[args.size() - 2], experts = args.back();
  Value scores = b.stackBuffer({roundUp(spec.experts, kLanes)}, b.getF32Type());
  bool apart = spec.correctionBias || spec.groups != 0;
  Value choices = apart ? b.stackBuffer({roundUp(spec.experts, kLanes)}, b.getF32Type()) : scores;
  Value none = b.f32(-std::numeric_limits<float>::max());
  b.loop(args[0], args[1], 1, [&](Value row) {
    emitScores(b, logits, row, scores, spec);
    if (apart)
      b.loop(spec.experts, [&](Value e) {
        Value score = b.load(scores, e);
        b.store(spec.correctionBias ? b.addf(score, b.load(args[3], e)) : score, choices, e);
      });
    if (spec.groups != 0)
      emitGroups(b, choices, spec);
    Value sum = b.carry(b.idx(0), b.idx(spec.k), 1, b.f32(0),
                        [&](Value choice, ValueRange carried) -> SmallVector<Value> {
                          auto [score, best] = emitBest(b, choices, b.idx(0), spec.experts);
                          Value weight = apart ? b.load(scores, best) : score;
                          b.store(weight, weights, {row, choice});
                          b.store(arith::IndexCastOp::create(b, b.getI32Type(), best), experts,
                                  {row, choice});
                          b.store(none, choices, best);
                          return {b.addf(carried[0], weight)};
                        })[0];
    if (!spec.normalizeEps && !spec.expertScales)
      return;
    Value divisor = spec.normalizeEps ? b.addf(sum, b.f32(*spec.normalizeEps)) : Value();
    b.loop(spec.k, [&](Value choice) {
      Value weight = b.load(weights, {row, choice});
      if (divisor)
        weight = b.divf(weight, divisor);
      if (spec.expertScales)
        weight = b.mulf(weight, b.load(args[args.size() - 3], b.loadIndex(experts, {row, choice})));
      b.store(weight, weights, {row, choice});
    });
  });
}

void mica::cpu::emitRoute(KernelBuilder &b, ValueRange args, int64_t experts, int64_t k) {
  Value picks = args[2], order = args[3], starts = args[4];
  Value rows = memref::DimOp::create(b, picks, 0);
  auto setStart = [&](Value value, Value expert) {
    b.store(arith::IndexCastOp::create(b, b.getI32Type(), value), starts, expert);
  };
  auto eachPair = [&](llvm::function_ref<void(Value, Value)> body) {
    b.loop(b.idx(0), rows, 1, [&](Value row) {
      b.loop(k, [&](Value choice) {
        body(b.add(b.mul(row, k), choice), b.loadIndex(picks, {row, choice}));
      });
    });
  };
  // A counting sort: count the pairs of each expert, compute their offsets, place each pair.
  b.loop(experts + 1, [&](Value expert) { setStart(b.idx(0), expert); });
  eachPair([&](Value, Value expert) { setStart(b.add(b.loadIndex(starts, expert), 1), expert); });
  b.carry(b.idx(0), b.idx(experts), 1, b.idx(0),
          [&](Value expert, ValueRange before) -> SmallVector<Value> {
            Value count = b.loadIndex(starts, expert);
            setStart(before[0], expert);
            return {b.add(before[0], count)};
          });
  eachPair([&](Value pair, Value expert) {
    Value place = b.loadIndex(starts, expert);
    b.store(arith::IndexCastOp::create(b, b.getI32Type(), pair), order,
            {b.div(place, k), b.rem(place, k)});
    setStart(b.add(place, 1), expert);
  });
  // Each offset has advanced to the end of its expert, which is the start of the next one.
  b.loop(experts, [&](Value back) {
    Value expert = b.sub(b.idx(experts), back);
    setStart(b.loadIndex(starts, b.sub(expert, b.idx(1))), expert);
  });
  setStart(b.idx(0), b.idx(0));
}

static int64_t choicesOf(Value order) { return cast<MemRefType>(order.getType()).getDimSize(1); }

/// Calls `body(expert, blocks, rows)` for the experts of the tasks [begin, end), with the rows of x
/// that chose the expert; their names are indices of pairs of a token and a choice. Consecutive
/// tasks belong to different experts, so that all threads share the few experts that a token chose:
/// task t is block t / E of expert t % E, and the blocks of an expert in a range are consecutive.
static void eachExpert(KernelBuilder &b, ValueRange args, Value order, Value starts,
                       llvm::function_ref<void(Value, BlockSpan, ProductRows)> body) {
  int64_t experts = cast<MemRefType>(starts.getType()).getDimSize(0) - 1,
          choices = choicesOf(order);
  b.loop(experts, [&](Value expert) {
    // The first block whose task is not less than `task`; block, expert and tasks are unsigned.
    auto firstOf = [&](Value task) {
      return b.div(b.sub(b.add(task, experts - 1), expert), experts);
    };
    ProductRows rows{args[2], b.loadIndex(starts, expert), b.loadIndex(starts, b.add(expert, 1))};
    rows.name = [&b, order, choices](Value number) {
      return b.loadIndex(order, {b.div(number, choices), b.rem(number, choices)});
    };
    Value chosen = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, rows.from, rows.to);
    b.when(chosen, [&] { body(expert, {firstOf(args[0]), firstOf(args[1])}, std::move(rows)); });
  });
}

/// Adds the `biases` [E, columns] of an expert, if there are any, to `sums` of 16 columns of
/// `columns` starting at `at`.
static SmallVector<Value> withBiases(KernelBuilder &b, ArrayRef<Value> sums, ValueRange biases,
                                     Value expert, Value at, int64_t columns) {
  SmallVector<Value> result(sums);
  for (auto [sum, bias] : llvm::zip(result, biases))
    sum = b.addf(sum, b.loadVector(bias, {expert, at}, liveColumns(b, at, columns)));
  return result;
}

/// A pair of a token and a choice, and their indices.
static SmallVector<Value> indicesOf(KernelBuilder &b, Value pair, int64_t choices) {
  return {b.div(pair, choices), b.rem(pair, choices)};
}

/// Calls `store(block, pair, column, sums)` for the matmuls of the tasks of experts: of 16 columns
/// of `columns` the sums of each of `panels` matrices, whose blocks alternate in the weight, with
/// their `biases`, if there are any.
static void emitExpertSums(
    KernelBuilder &b, ValueRange args, ValueRange biases, const WeightSpec &weight, int64_t panels,
    int64_t columns,
    llvm::function_ref<void(Value block, Value pair, Value column, ArrayRef<Value> sums)> store) {
  Value x = args[2], order = args[3], starts = args[4], packed = args[5];
  int64_t choices = choicesOf(order);
  bool ofChoices = cast<MemRefType>(x.getType()).getRank() == 3;
  eachExpert(b, args, order, starts, [&](Value expert, BlockSpan blocks, ProductRows rows) {
    blocks.panels = panels;
    rows.at = [&](Value pair) {
      return ofChoices ? indicesOf(b, pair, choices) : SmallVector<Value>{b.div(pair, choices)};
    };
    auto panelsOf = [&](Value block) {
      SmallVector<PackedPanel> result;
      Value first = panels == 1 ? block : b.mul(block, panels);
      for (int64_t i = 0; i < panels; ++i)
        result.push_back(
            weightPanel(b, packed, {expert, i == 0 ? first : b.add(first, i)}, weight));
      return result;
    };
    emitBlockSums(b, rows, weight, blocks, panelsOf,
                  [&](Value block, Value pair, Value column, ArrayRef<Value> sums) {
                    Value at = b.add(b.mul(block, kBlockColumns), column);
                    store(block, pair, column, withBiases(b, sums, biases, expert, at, columns));
                  });
  });
}

void mica::cpu::emitExpertsUp(KernelBuilder &b, ValueRange args, const WeightSpec &weight,
                              int64_t inner, const Gating &gating) {
  int64_t choices = choicesOf(args[3]);
  emitExpertSums(b, args, args.drop_front(6).drop_back(), weight, /*panels=*/2, inner,
                 [&](Value block, Value pair, Value column, ArrayRef<Value> sums) {
                   storeGated(b, sums, block, column, gating, inner, args.back(),
                              indicesOf(b, pair, choices));
                 });
}

void mica::cpu::emitExpertsProduct(KernelBuilder &b, ValueRange args, const WeightSpec &weight) {
  Value y = args.back();
  int64_t choices = choicesOf(args[3]);
  emitExpertSums(b, args, args.drop_front(6).drop_back(), weight, /*panels=*/1, weight.n,
                 [&](Value block, Value pair, Value column, ArrayRef<Value> sums) {
                   SmallVector<Value> at = indicesOf(b, pair, choices);
                   at.push_back(b.add(b.mul(block, kBlockColumns), column));
                   b.storeVector(sums[0], y, at, liveColumns(b, at.back(), weight.n));
                 });
}

void mica::cpu::emitExpertsUpApart(KernelBuilder &b, ValueRange args, const WeightSpec &weight,
                                   const Gating &gating) {
  Value gates = args[6], h = args.back();
  int64_t choices = choicesOf(args[3]);
  emitExpertSums(b, args, args.drop_front(7).drop_back(), weight, /*panels=*/1, weight.n,
                 [&](Value block, Value pair, Value column, ArrayRef<Value> sums) {
                   SmallVector<Value> at = indicesOf(b, pair, choices);
                   SmallVector<Value> ofGate(at);
                   ofGate.push_back(b.add(b.mul(block, kBlockColumns), column));
                   Value gate =
                       b.loadVector(gates, ofGate, liveColumns(b, ofGate.back(), weight.n));
                   storeGated(b, {gate, sums[0]}, block, column, gating, weight.n, h, at);
                 });
}

void mica::cpu::emitCombine(KernelBuilder &b, ValueRange args, bool accumulate) {
  Value parts = args[2], weights = args[3], y = args[4];
  ArrayRef<int64_t> shape = cast<MemRefType>(parts.getType()).getShape();
  b.loop(args[0], args[1], 1, [&](Value row) {
    b.eachVector(shape[2], [&](Value column, Value live) {
      Value sum = accumulate ? b.loadVector(y, {row, column}, live) : b.splat(0);
      for (int64_t choice = 0; choice < shape[1]; ++choice) {
        Value weight = b.broadcast(b.load(weights, {row, b.idx(choice)}));
        sum = b.fma(weight, b.loadVector(parts, {row, b.idx(choice), column}, live), sum);
      }
      b.storeVector(sum, y, {row, column}, live);
    });
  });
}
