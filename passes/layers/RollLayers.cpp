//===- RollLayers.cpp - roll the calls of layers into a loop --------------===//

#include "passes/Passes.h"
#include "passes/layers/InterleavedLayers.h"

#include <map>

namespace mica {
#define GEN_PASS_DEF_ROLLLAYERS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
/// The calls of one iteration of a loop.
using Iteration = ArrayRef<func::CallOp>;

/// How an operand of a call is obtained in the next iteration of a run.
struct Provenance {
  /// Same: loop-invariant. Carried: a result of the previous iteration. Within: a result of an
  /// earlier call in the same iteration. Layer: a layer index, which increases by `step`. Weight:
  /// an entry of a list of weights.
  enum Kind { Same, Carried, Within, Layer, Weight } kind;
  unsigned call = 0, result = 0; ///< of Carried and Within: the call in the iteration and its
                                 ///< result
  int64_t step = 0;              ///< of Layer: increment per iteration
  bool operator==(const Provenance &other) const = default;
};

/// Consecutive calls that a loop can execute, in iterations of `period` calls.
struct Run {
  SmallVector<func::CallOp> calls;
  size_t period = 1;
  SmallVector<SmallVector<Provenance>> provenances = {}; ///< by call of an iteration and operand

  size_t iterations() const { return calls.size() / period; }
  Iteration iteration(size_t number) const {
    return ArrayRef(calls).slice(number * period, period);
  }
};
} // namespace

/// The maximum length of a pattern of alternating layer types.
static constexpr size_t kMaxPeriod = 16;

/// Rounds (see InterleavedLayers), which need tables, are used if periods would leave more calls
/// than this per function.
static constexpr size_t kMinSavedCallsPerFunction = 4;

/// The index of the call in `iteration` that `value` is a result of, or nullopt.
static std::optional<unsigned> findCall(Iteration iteration, Value value) {
  const auto *found = llvm::find(iteration, value.getDefiningOp());
  return found == iteration.end() ? std::nullopt
                                  : std::optional<unsigned>(found - iteration.begin());
}

/// The provenance of operand `index` of call `number` between two consecutive iterations, or
/// nullopt.
static std::optional<Provenance> findProvenance(Iteration iteration, Iteration next,
                                                unsigned number, unsigned index) {
  Value before = iteration[number]->getOperand(index), after = next[number]->getOperand(index);
  std::optional<unsigned> maker = findCall(iteration, before);
  if (before == after && !maker)
    return Provenance{Provenance::Same};
  if (std::optional<unsigned> earlier = findCall(iteration, after))
    return Provenance{Provenance::Carried, *earlier, cast<OpResult>(after).getResultNumber()};
  if (maker && maker == findCall(next, after) &&
      cast<OpResult>(before).getResultNumber() == cast<OpResult>(after).getResultNumber())
    return Provenance{Provenance::Within, *maker, cast<OpResult>(after).getResultNumber()};
  if (before.getDefiningOp<GetWeightOp>() && after.getDefiningOp<GetWeightOp>())
    return Provenance{Provenance::Weight};
  auto first = getConstant(before), second = getConstant(after);
  if (first && second && *second == *first)
    return Provenance{Provenance::Same};
  if (first && second && *second > *first && *second - *first <= int64_t(iteration.size()))
    return Provenance{Provenance::Layer, 0, 0, *second - *first};
  return std::nullopt;
}

/// The provenances of all operands if `next` can follow `iteration` in a loop, which requires that
/// nothing else uses the results of `iteration`; else nullopt.
static std::optional<SmallVector<SmallVector<Provenance>>> findProvenances(Iteration iteration,
                                                                           Iteration next) {
  SmallVector<SmallVector<Provenance>> provenances(iteration.size());
  for (unsigned number = 0; number < iteration.size(); ++number) {
    func::CallOp call = iteration[number], later = next[number];
    if (call.getCallee() != later.getCallee())
      return std::nullopt;
    for (unsigned index = 0; index < call.getNumOperands(); ++index) {
      std::optional<Provenance> provenance = findProvenance(iteration, next, number, index);
      if (!provenance)
        return std::nullopt;
      provenances[number].push_back(*provenance);
    }
    if (!llvm::all_of(call->getUsers(), [&](Operation *user) {
          return llvm::is_contained(iteration, user) || llvm::is_contained(next, user);
        }))
      return std::nullopt;
  }
  return provenances;
}

/// Whether some call uses this result of the previous iteration.
static bool isCarried(const Run &run, unsigned call, unsigned result) {
  return llvm::any_of(run.provenances, [&](ArrayRef<Provenance> provenances) {
    return llvm::is_contained(provenances, Provenance{Provenance::Carried, call, result});
  });
}

/// Whether all values used after the last iteration are carried from iteration to iteration.
static bool isCarriable(const Run &run) {
  Iteration last = run.iteration(run.iterations() - 1);
  for (auto [number, call] : llvm::enumerate(last))
    for (OpResult result : call->getResults())
      for (Operation *user : result.getUsers())
        if (!llvm::is_contained(last, user) && !isCarried(run, number, result.getResultNumber()))
          return false;
  return true;
}

/// Whether the run carries at most one tensor besides the caches, and uses it only in the next
/// iteration: a second tensor would need a separate buffer while the first is computed.
static bool carriesOneTensor(const Run &run) {
  std::optional<Provenance> stream;
  auto isTensor = [&](const Provenance &provenance) {
    return isa<RankedTensorType>(
        func::CallOp(run.calls[provenance.call]).getResult(provenance.result).getType());
  };
  for (ArrayRef<Provenance> provenances : run.provenances)
    for (const Provenance &provenance : provenances)
      if (provenance.kind == Provenance::Carried && isTensor(provenance)) {
        if (stream)
          return false;
        stream = provenance;
      }
  return !stream || llvm::none_of(run.provenances, [&](ArrayRef<Provenance> provenances) {
    return llvm::is_contained(provenances,
                              Provenance{Provenance::Within, stream->call, stream->result});
  });
}

/// The longest run with this period at the beginning of `calls`; a single iteration if a loop
/// cannot execute more.
static Run findRun(ArrayRef<func::CallOp> calls, size_t period) {
  Run run{SmallVector<func::CallOp>(calls.take_front(period)), period};
  for (size_t end = 2 * period; end <= calls.size(); end += period) {
    Iteration next = calls.slice(end - period, period);
    auto provenances = findProvenances(run.iteration(run.iterations() - 1), next);
    if (!provenances || (run.iterations() > 1 && *provenances != run.provenances))
      break;
    run.provenances = std::move(*provenances);
    run.calls.append(next.begin(), next.end());
  }
  if (!isCarriable(run) || !carriesOneTensor(run))
    run.calls.truncate(period);
  return run;
}

/// Runs of at least two iterations among `calls`. At each call, selects the run with the most
/// calls, and of these the one with the shortest period.
static SmallVector<Run> findRuns(ArrayRef<func::CallOp> calls) {
  SmallVector<Run> runs;
  for (ArrayRef<func::CallOp> rest = calls; !rest.empty();) {
    std::optional<Run> best;
    for (size_t period = 1; period <= std::min(kMaxPeriod, rest.size() / 2); ++period) {
      Run run = findRun(rest, period);
      if (run.iterations() > 1 && (!best || run.calls.size() > best->calls.size()))
        best = std::move(run);
    }
    rest = rest.drop_front(best ? best->calls.size() : 1);
    if (best)
      runs.push_back(std::move(*best));
  }
  return runs;
}

namespace {
/// Creates the loop of one run.
class LayerRoller {
public:
  LayerRoller(IRRewriter &rewriter, const Run &run)
      : rewriter(rewriter), run(run), first(run.iteration(0)),
        loc(rewriter.getFusedLoc(
            llvm::map_to_vector(run.calls, [](func::CallOp call) { return call.getLoc(); }))) {}

  LogicalResult roll() {
    if (failed(moveOperands()))
      return failure();
    SmallVector<Value> inits;
    eachCarried([&](Value operand, const Provenance &) { inits.push_back(operand); });
    rewriter.setInsertionPoint(first.front());
    makeConstants();
    auto loop =
        scf::ForOp::create(rewriter, loc, constant(0),
                           constant(static_cast<int64_t>(run.iterations())), constant(1), inits);
    rewriter.setInsertionPointToStart(loop.getBody());
    writeBody(loop);
    Iteration last = run.iteration(run.iterations() - 1);
    unsigned carried = 0;
    eachCarried([&](Value, const Provenance &provenance) {
      rewriter.replaceAllUsesWith(func::CallOp(last[provenance.call]).getResult(provenance.result),
                                  loop.getResult(carried++));
    });
    eraseCalls(rewriter, run.calls);
    return success();
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  /// Calls `function` with each operand of the first iteration.
  void eachOperand(llvm::function_ref<void(Value, const Provenance &)> function) {
    for (auto [call, provenances] : llvm::zip_equal(first, run.provenances))
      for (auto [operand, provenance] : llvm::zip_equal(call->getOperands(), provenances))
        function(operand, provenance);
  }

  void eachCarried(llvm::function_ref<void(Value, const Provenance &)> function) {
    eachOperand([&](Value operand, const Provenance &provenance) {
      if (provenance.kind == Provenance::Carried)
        function(operand, provenance);
    });
  }

  /// Moves the operands of the first iteration before its first call.
  LogicalResult moveOperands() {
    SmallVector<Value> values;
    eachOperand([&](Value operand, const Provenance &provenance) {
      if (provenance.kind != Provenance::Within)
        values.push_back(operand);
    });
    return moveBefore(rewriter, first.front(), values);
  }

  /// Creates the constants of layer indices outside the loop.
  void makeConstants() {
    eachOperand([&](Value operand, const Provenance &provenance) {
      if (provenance.kind != Provenance::Layer)
        return;
      int64_t number = *getConstant(operand);
      if (number != 0 && !numbers.contains(number))
        numbers[number] = constant(number);
      if (provenance.step != 1 && !numbers.contains(provenance.step))
        numbers[provenance.step] = constant(provenance.step);
    });
  }

  /// first + iteration * step
  Value layerOf(Value entry, int64_t firstLayer, int64_t step) {
    Value &layer = layers[{firstLayer, step}];
    if (layer)
      return layer;
    layer = entry;
    if (step != 1)
      layer = arith::MulIOp::create(rewriter, loc, layer, numbers.at(step));
    if (firstLayer != 0)
      layer = arith::AddIOp::create(rewriter, loc, layer, numbers.at(firstLayer));
    return layer;
  }

  void writeBody(scf::ForOp loop) {
    SmallVector<func::CallOp> calls;
    unsigned carried = 0;
    for (auto [number, call] : llvm::enumerate(first)) {
      SmallVector<Value> operands;
      for (auto [index, provenance] : llvm::enumerate(run.provenances[number])) {
        Value operand = func::CallOp(call)->getOperand(index);
        switch (provenance.kind) {
        case Provenance::Same:
          operands.push_back(operand);
          break;
        case Provenance::Carried:
          operands.push_back(loop.getRegionIterArg(carried++));
          break;
        case Provenance::Within:
          operands.push_back(calls[provenance.call].getResult(provenance.result));
          break;
        case Provenance::Layer:
          operands.push_back(
              layerOf(loop.getInductionVar(), *getConstant(operand), provenance.step));
          break;
        case Provenance::Weight:
          operands.push_back(
              selectWeight(rewriter, eachIteration(number, index), loop.getInductionVar()));
          break;
        }
      }
      func::CallOp model = call;
      calls.push_back(func::CallOp::create(rewriter, loc, model.getResultTypes(),
                                           model.getCalleeAttr(), operands));
    }
    SmallVector<Value> next;
    eachCarried([&](Value, const Provenance &provenance) {
      next.push_back(calls[provenance.call].getResult(provenance.result));
    });
    scf::YieldOp::create(rewriter, loc, next);
  }

  /// The values of operand `index` of call `number` in all iterations.
  SmallVector<Value> eachIteration(unsigned number, unsigned index) {
    SmallVector<Value> values;
    for (size_t iteration = 0; iteration < run.iterations(); ++iteration)
      values.push_back(func::CallOp(run.iteration(iteration)[number]).getOperand(index));
    return values;
  }

  IRRewriter &rewriter;
  const Run &run;
  Iteration first;
  Location loc;
  std::map<int64_t, Value> numbers;                    ///< constants
  std::map<std::pair<int64_t, int64_t>, Value> layers; ///< by first layer and step
};

struct RollLayers : mica::impl::RollLayersBase<RollLayers> {
  // call f(x, i), call f(.., i + 1), ... => scf.for i { call f(.., i) }
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        rollBlock(rewriter, block);
  }

private:
  static void rollBlock(IRRewriter &rewriter, Block &block) {
    auto all = block.getOps<func::CallOp>();
    SmallVector<func::CallOp> calls(all.begin(), all.end());
    CarriedChains chains(calls);
    SmallVector<Run> runs;
    SmallVector<InterleavedLayers> interleaved;
    size_t done = 0; // number of calls that are in `runs` or `interleaved`, or are not rolled
    for (size_t at = 0; at < calls.size();) {
      InterleavedLayers layers = InterleavedLayers::find(ArrayRef(calls).drop_front(at), chains);
      size_t end = at + std::max<size_t>(layers.getCalls().size(), 1);
      if (isProfitable(layers)) {
        llvm::append_range(runs, findRuns(ArrayRef(calls).slice(done, at - done)));
        interleaved.push_back(std::move(layers));
        done = end;
      }
      at = end;
    }
    llvm::append_range(runs, findRuns(ArrayRef(calls).drop_front(done)));
    for (const InterleavedLayers &layers : interleaved)
      if (failed(layers.roll(rewriter)))
        llvm::append_range(runs, findRuns(layers.getCalls()));
    for (const Run &run : runs)
      (void)LayerRoller(rewriter, run).roll();
  }

  /// Whether periods would leave many more calls than interleaved loops, which leave one per
  /// function.
  static bool isProfitable(const InterleavedLayers &layers) {
    size_t left = layers.getCalls().size();
    for (const Run &run : findRuns(layers.getCalls()))
      left -= run.calls.size() - run.period;
    return left > kMinSavedCallsPerFunction * layers.getNumFunctions();
  }
};
} // namespace
