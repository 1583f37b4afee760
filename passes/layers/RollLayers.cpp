//===- RollLayers.cpp - one loop over layers -----------------------------------===//

#include "passes/Passes.h"
#include "passes/layers/LayerMix.h"

#include <map>

namespace mica {
#define GEN_PASS_DEF_ROLLLAYERS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
/// The calls of one turn of a loop.
using Turn = ArrayRef<func::CallOp>;

/// What an operand of a call is for the same call in the next turn of a run.
struct Role {
  /// Carried: a result of the turn before. Within: of a call before it in its turn.
  enum Kind { Same, Carried, Within, Layer, Weight } kind;
  unsigned call = 0, result = 0; ///< which result, of which call of the turn
  int64_t step = 0;              ///< of Layer: from one turn to the next
  bool operator==(const Role &other) const = default;
};

/// Consecutive calls that a loop can make, in turns of `period` of them.
struct Run {
  SmallVector<func::CallOp> calls;
  size_t period = 1;
  SmallVector<SmallVector<Role>> roles = {}; ///< of each call of a turn, those of its operands

  size_t turns() const { return calls.size() / period; }
  Turn turn(size_t number) const { return ArrayRef(calls).slice(number * period, period); }
};
} // namespace

/// Layers of several kinds take turns in patterns of at most this length.
static constexpr size_t kLongestPeriod = 16;

/// Where periods leave more calls than these for each function, rounds are worth their tables.
static constexpr size_t kCallsPerKind = 4;

/// The number of the call in `turn` that `value` is a result of, or nothing.
static std::optional<unsigned> findCall(Turn turn, Value value) {
  const auto *found = llvm::find(turn, value.getDefiningOp());
  return found == turn.end() ? std::nullopt : std::optional<unsigned>(found - turn.begin());
}

/// The role of operand `index` of call `number` between two consecutive turns, or nothing.
static std::optional<Role> findRole(Turn turn, Turn next, unsigned number, unsigned index) {
  Value before = turn[number]->getOperand(index), after = next[number]->getOperand(index);
  std::optional<unsigned> maker = findCall(turn, before);
  if (before == after && !maker)
    return Role{Role::Same};
  if (std::optional<unsigned> earlier = findCall(turn, after))
    return Role{Role::Carried, *earlier, cast<OpResult>(after).getResultNumber()};
  if (maker && maker == findCall(next, after) &&
      cast<OpResult>(before).getResultNumber() == cast<OpResult>(after).getResultNumber())
    return Role{Role::Within, *maker, cast<OpResult>(after).getResultNumber()};
  if (before.getDefiningOp<GetWeightOp>() && after.getDefiningOp<GetWeightOp>())
    return Role{Role::Weight};
  auto first = getConstant(before), second = getConstant(after);
  if (first && second && *second > *first && *second - *first <= int64_t(turn.size()))
    return Role{Role::Layer, 0, 0, *second - *first};
  return std::nullopt;
}

/// The roles of all operands when `next` may follow `turn` in a loop: nothing else may need the
/// results of `turn`.
static std::optional<SmallVector<SmallVector<Role>>> findRoles(Turn turn, Turn next) {
  SmallVector<SmallVector<Role>> roles(turn.size());
  for (unsigned number = 0; number < turn.size(); ++number) {
    func::CallOp call = turn[number], later = next[number];
    if (call.getCallee() != later.getCallee())
      return std::nullopt;
    for (unsigned index = 0; index < call.getNumOperands(); ++index) {
      std::optional<Role> role = findRole(turn, next, number, index);
      if (!role)
        return std::nullopt;
      roles[number].push_back(*role);
    }
    if (!llvm::all_of(call->getUsers(), [&](Operation *user) {
          return llvm::is_contained(turn, user) || llvm::is_contained(next, user);
        }))
      return std::nullopt;
  }
  return roles;
}

/// Whether some call takes that result of the turn before.
static bool isCarried(const Run &run, unsigned call, unsigned result) {
  return llvm::any_of(run.roles, [&](ArrayRef<Role> roles) {
    return llvm::is_contained(roles, Role{Role::Carried, call, result});
  });
}

/// Whether all that is needed behind the last turn is carried from turn to turn.
static bool handsOn(const Run &run) {
  Turn last = run.turn(run.turns() - 1);
  for (auto [number, call] : llvm::enumerate(last))
    for (OpResult result : call->getResults())
      for (Operation *user : result.getUsers())
        if (!llvm::is_contained(last, user) && !isCarried(run, number, result.getResultNumber()))
          return false;
  return true;
}

/// Whether the run carries one tensor beside the caches, and needs it nowhere else: a second one
/// would need a buffer of its own while the first is made.
static bool hasOneStream(const Run &run) {
  std::optional<Role> stream;
  auto isTensor = [&](const Role &role) {
    return isa<RankedTensorType>(
        func::CallOp(run.calls[role.call]).getResult(role.result).getType());
  };
  for (ArrayRef<Role> roles : run.roles)
    for (const Role &role : roles)
      if (role.kind == Role::Carried && isTensor(role)) {
        if (stream)
          return false;
        stream = role;
      }
  return !stream || llvm::none_of(run.roles, [&](ArrayRef<Role> roles) {
    return llvm::is_contained(roles, Role{Role::Within, stream->call, stream->result});
  });
}

/// The longest run of that period that begins `calls`; of one turn where a loop cannot make it.
static Run findRun(ArrayRef<func::CallOp> calls, size_t period) {
  Run run{SmallVector<func::CallOp>(calls.take_front(period)), period};
  for (size_t end = 2 * period; end <= calls.size(); end += period) {
    Turn next = calls.slice(end - period, period);
    auto roles = findRoles(run.turn(run.turns() - 1), next);
    if (!roles || (run.turns() > 1 && *roles != run.roles))
      break;
    run.roles = std::move(*roles);
    run.calls.append(next.begin(), next.end());
  }
  if (!handsOn(run) || !hasOneStream(run))
    run.calls.truncate(period);
  return run;
}

/// Runs among `calls`, of two turns at least. Of those that begin at a call it is the one that has
/// most of them, and of these the one of the shortest period.
static SmallVector<Run> findRuns(ArrayRef<func::CallOp> calls) {
  SmallVector<Run> runs;
  for (ArrayRef<func::CallOp> rest = calls; !rest.empty();) {
    std::optional<Run> best;
    for (size_t period = 1; period <= std::min(kLongestPeriod, rest.size() / 2); ++period) {
      Run run = findRun(rest, period);
      if (run.turns() > 1 && (!best || run.calls.size() > best->calls.size()))
        best = std::move(run);
    }
    rest = rest.drop_front(best ? best->calls.size() : 1);
    if (best)
      runs.push_back(std::move(*best));
  }
  return runs;
}

namespace {
/// Writes the loop of one run.
class LayerRoller {
public:
  LayerRoller(IRRewriter &rewriter, const Run &run)
      : rewriter(rewriter), run(run), first(run.turn(0)),
        loc(rewriter.getFusedLoc(
            llvm::map_to_vector(run.calls, [](func::CallOp call) { return call.getLoc(); }))) {}

  LogicalResult roll() {
    if (failed(moveOperands()))
      return failure();
    SmallVector<Value> inits;
    eachCarried([&](Value operand, const Role &) { inits.push_back(operand); });
    rewriter.setInsertionPoint(first.front());
    makeConstants();
    auto loop = scf::ForOp::create(rewriter, loc, constant(0),
                                   constant(static_cast<int64_t>(run.turns())), constant(1), inits);
    rewriter.setInsertionPointToStart(loop.getBody());
    writeBody(loop);
    Turn last = run.turn(run.turns() - 1);
    unsigned carried = 0;
    eachCarried([&](Value, const Role &role) {
      rewriter.replaceAllUsesWith(func::CallOp(last[role.call]).getResult(role.result),
                                  loop.getResult(carried++));
    });
    eraseCalls(rewriter, run.calls);
    return success();
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  /// Of the first turn.
  void eachOperand(llvm::function_ref<void(Value, const Role &)> function) {
    for (auto [call, roles] : llvm::zip_equal(first, run.roles))
      for (auto [operand, role] : llvm::zip_equal(call->getOperands(), roles))
        function(operand, role);
  }

  void eachCarried(llvm::function_ref<void(Value, const Role &)> function) {
    eachOperand([&](Value operand, const Role &role) {
      if (role.kind == Role::Carried)
        function(operand, role);
    });
  }

  /// What the first turn needs must be there before its first call.
  LogicalResult moveOperands() {
    SmallVector<Value> values;
    eachOperand([&](Value operand, const Role &role) {
      if (role.kind != Role::Within)
        values.push_back(operand);
    });
    return moveBefore(rewriter, first.front(), values);
  }

  /// Those of layers, outside of the loop.
  void makeConstants() {
    eachOperand([&](Value operand, const Role &role) {
      if (role.kind != Role::Layer)
        return;
      int64_t number = *getConstant(operand);
      if (number != 0 && !numbers.contains(number))
        numbers[number] = constant(number);
      if (role.step != 1 && !numbers.contains(role.step))
        numbers[role.step] = constant(role.step);
    });
  }

  /// first + turn * step
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
      for (auto [index, role] : llvm::enumerate(run.roles[number])) {
        Value operand = func::CallOp(call)->getOperand(index);
        switch (role.kind) {
        case Role::Same:
          operands.push_back(operand);
          break;
        case Role::Carried:
          operands.push_back(loop.getRegionIterArg(carried++));
          break;
        case Role::Within:
          operands.push_back(calls[role.call].getResult(role.result));
          break;
        case Role::Layer:
          operands.push_back(layerOf(loop.getInductionVar(), *getConstant(operand), role.step));
          break;
        case Role::Weight:
          operands.push_back(
              selectWeight(rewriter, eachTurn(number, index), loop.getInductionVar()));
          break;
        }
      }
      func::CallOp model = call;
      calls.push_back(func::CallOp::create(rewriter, loc, model.getResultTypes(),
                                           model.getCalleeAttr(), operands));
    }
    SmallVector<Value> next;
    eachCarried(
        [&](Value, const Role &role) { next.push_back(calls[role.call].getResult(role.result)); });
    scf::YieldOp::create(rewriter, loc, next);
  }

  /// What operand `index` of call `number` is in each turn.
  SmallVector<Value> eachTurn(unsigned number, unsigned index) {
    SmallVector<Value> values;
    for (size_t turn = 0; turn < run.turns(); ++turn)
      values.push_back(func::CallOp(run.turn(turn)[number]).getOperand(index));
    return values;
  }

  IRRewriter &rewriter;
  const Run &run;
  Turn first;
  Location loc;
  std::map<int64_t, Value> numbers;                    ///< constants
  std::map<std::pair<int64_t, int64_t>, Value> layers; ///< by the first one and the step
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
    Lanes lanes(calls);
    SmallVector<Run> runs;
    SmallVector<LayerMix> mixes;
    size_t done = 0; // calls that are in `runs` and `mixes`, or stay
    for (size_t at = 0; at < calls.size();) {
      LayerMix mix = LayerMix::find(ArrayRef(calls).drop_front(at), lanes);
      size_t end = at + std::max<size_t>(mix.getCalls().size(), 1);
      if (isWorthIt(mix)) {
        llvm::append_range(runs, findRuns(ArrayRef(calls).slice(done, at - done)));
        mixes.push_back(std::move(mix));
        done = end;
      }
      at = end;
    }
    llvm::append_range(runs, findRuns(ArrayRef(calls).drop_front(done)));
    for (const LayerMix &mix : mixes)
      if (failed(mix.roll(rewriter)))
        llvm::append_range(runs, findRuns(mix.getCalls()));
    for (const Run &run : runs)
      (void)LayerRoller(rewriter, run).roll();
  }

  /// Whether periods would leave many calls, and a mix far fewer.
  static bool isWorthIt(const LayerMix &mix) {
    size_t left = mix.getCalls().size();
    for (const Run &run : findRuns(mix.getCalls()))
      left -= run.calls.size() - run.period;
    return left > kCallsPerKind * mix.countKinds();
  }
};
} // namespace
