//===- RollLayers.cpp - one loop over layers -----------------------------------===//

#include "passes/Passes.h"

#include "mlir/IR/Matchers.h"

namespace mica {
#define GEN_PASS_DEF_ROLLLAYERS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

static std::optional<int64_t> getConstant(Value value) {
  APInt number;
  return value.getType().isIndex() && matchPattern(value, m_ConstantInt(&number))
             ? std::optional<int64_t>(number.getSExtValue())
             : std::nullopt;
}

namespace {
/// What an operand of a call is for the next call of a run.
struct Role {
  enum Kind { Same, Carried, Layer, Weight } kind;
  unsigned result = 0; ///< of the call before, for Carried
  bool operator==(const Role &other) const { return kind == other.kind && result == other.result; }
};

/// Consecutive calls of one function that a loop can make.
struct Run {
  SmallVector<func::CallOp> calls;
  SmallVector<Role> roles;
};
} // namespace

/// The role of operand `index` between two consecutive calls, or nothing.
static std::optional<Role> findRole(func::CallOp call, func::CallOp next, unsigned index) {
  Value before = call.getOperand(index), after = next.getOperand(index);
  if (before == after)
    return Role{Role::Same};
  if (after.getDefiningOp() == call)
    return Role{Role::Carried, cast<OpResult>(after).getResultNumber()};
  if (before.getDefiningOp<GetWeightOp>() && after.getDefiningOp<GetWeightOp>())
    return Role{Role::Weight};
  auto first = getConstant(before), second = getConstant(after);
  if (first && second && *second == *first + 1)
    return Role{Role::Layer};
  return std::nullopt;
}

/// The roles of all operands when `next` may follow `call` in a loop: nothing else may need the
/// results of `call`.
static std::optional<SmallVector<Role>> findRoles(func::CallOp call, func::CallOp next) {
  SmallVector<Role> roles;
  for (unsigned index = 0; index < call.getNumOperands(); ++index) {
    std::optional<Role> role = findRole(call, next, index);
    if (!role)
      return std::nullopt;
    roles.push_back(*role);
  }
  if (!llvm::all_of(call->getUsers(), [&](Operation *user) { return user == next; }))
    return std::nullopt;
  return roles;
}

/// Maximal runs among the calls of `block`, at least two calls each.
static SmallVector<Run> findRuns(Block &block) {
  SmallVector<Run> runs;
  Run run;
  auto finish = [&] {
    if (run.calls.size() > 1)
      runs.push_back(run);
    run = {};
  };
  for (auto call : block.getOps<func::CallOp>()) {
    if (!run.calls.empty() && run.calls.back().getCallee() == call.getCallee()) {
      auto roles = findRoles(run.calls.back(), call);
      if (roles && (run.calls.size() == 1 || *roles == run.roles)) {
        run.calls.push_back(call);
        run.roles = *roles;
        continue;
      }
    }
    finish();
    run.calls.push_back(call);
  }
  finish();
  return runs;
}

/// The number of the first layer: what all operands of that role begin with; 0 without such
/// operands.
static std::optional<int64_t> findFirstLayer(const Run &run) {
  std::optional<int64_t> first;
  func::CallOp call = run.calls.front();
  for (auto [index, role] : llvm::enumerate(run.roles)) {
    if (role.kind != Role::Layer)
      continue;
    int64_t layer = *getConstant(call.getOperand(index));
    if (first && *first != layer)
      return std::nullopt;
    first = layer;
  }
  return first.value_or(0);
}

namespace {
/// Writes the loop of one run.
class LayerRoller {
public:
  LayerRoller(IRRewriter &rewriter, const Run &run, int64_t firstLayer)
      : rewriter(rewriter), run(run), firstLayer(firstLayer),
        loc(rewriter.getFusedLoc(
            llvm::map_to_vector(run.calls, [](func::CallOp call) { return call.getLoc(); }))) {}

  void roll() {
    func::CallOp first = run.calls.front(), last = run.calls.back();
    SmallVector<Value> inits;
    for (auto [operand, role] : llvm::zip_equal(first.getOperands(), run.roles))
      if (role.kind == Role::Carried)
        inits.push_back(operand);
    rewriter.setInsertionPoint(first);
    Value firstNumber = firstLayer == 0 ? Value() : constant(firstLayer);
    auto loop = scf::ForOp::create(rewriter, loc, constant(0), constant(run.calls.size()),
                                   constant(1), inits);
    rewriter.setInsertionPointToStart(loop.getBody());
    writeBody(loop, firstNumber);
    unsigned carried = 0;
    for (const Role &role : run.roles)
      if (role.kind == Role::Carried)
        rewriter.replaceAllUsesWith(last.getResult(role.result), loop.getResult(carried++));
    eraseCalls();
  }

private:
  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  void writeBody(scf::ForOp loop, Value firstNumber) {
    Value entry = loop.getInductionVar(), layer = entry;
    if (firstLayer != 0)
      layer = arith::AddIOp::create(rewriter, loc, entry, firstNumber);
    SmallVector<Value> operands;
    unsigned carried = 0;
    for (auto [index, role] : llvm::enumerate(run.roles)) {
      switch (role.kind) {
      case Role::Same:
        operands.push_back(run.calls.front()->getOperand(index));
        break;
      case Role::Carried:
        operands.push_back(loop.getRegionIterArg(carried++));
        break;
      case Role::Layer:
        operands.push_back(layer);
        break;
      case Role::Weight:
        operands.push_back(selectWeight(index, entry));
        break;
      }
    }
    func::CallOp first = run.calls.front();
    auto call = func::CallOp::create(rewriter, loc, first.getResultTypes(), first.getCalleeAttr(),
                                     operands);
    SmallVector<Value> next;
    for (const Role &role : run.roles)
      if (role.kind == Role::Carried)
        next.push_back(call.getResult(role.result));
    scf::YieldOp::create(rewriter, loc, next);
  }

  /// The weight that operand `index` is in the turn `entry` of the loop.
  Value selectWeight(unsigned index, Value entry) {
    SmallVector<Attribute> names;
    for (func::CallOp call : run.calls)
      names.push_back(call->getOperand(index).getDefiningOp<GetWeightOp>().getWeightAttr());
    Value first = run.calls.front()->getOperand(index);
    if (llvm::all_equal(names))
      return first;
    return SelectWeightOp::create(rewriter, first.getLoc(), first.getType(),
                                  rewriter.getArrayAttr(names), entry);
  }

  /// Erases the calls, which are rolled, and the weights and constants that only they needed.
  void eraseCalls() {
    llvm::SetVector<Operation *> producers;
    for (func::CallOp call : llvm::reverse(run.calls)) {
      for (Value operand : call.getOperands())
        if (operand.getDefiningOp() && !isa<func::CallOp>(operand.getDefiningOp()))
          producers.insert(operand.getDefiningOp());
      rewriter.eraseOp(call);
    }
    for (Operation *producer : producers)
      if (isOpTriviallyDead(producer))
        rewriter.eraseOp(producer);
  }

  IRRewriter &rewriter;
  const Run &run;
  int64_t firstLayer;
  Location loc;
};

struct RollLayers : mica::impl::RollLayersBase<RollLayers> {
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (Block &block : function.getBody())
        for (const Run &run : findRuns(block))
          (void)rollRun(rewriter, run);
  }

  // call f(x, i), call f(.., i + 1), ... => scf.for i { call f(.., i) }
  static LogicalResult rollRun(IRRewriter &rewriter, const Run &run) {
    func::CallOp last = run.calls.back();
    std::optional<int64_t> firstLayer = findFirstLayer(run);
    if (!firstLayer)
      return rewriter.notifyMatchFailure(last, "the layer numbers of a call differ");
    for (OpResult result : last->getResults())
      if (!result.use_empty() &&
          !llvm::is_contained(run.roles, Role{Role::Carried, result.getResultNumber()}))
        return rewriter.notifyMatchFailure(last,
                                           "a result is needed that no call hands to the next");
    LayerRoller(rewriter, run, *firstLayer).roll();
    return success();
  }
};
} // namespace
