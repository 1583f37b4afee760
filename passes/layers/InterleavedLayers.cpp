//===- InterleavedLayers.cpp - loops over interleaved layer types ---------===//

#include "passes/layers/InterleavedLayers.h"

using namespace mlir;
using namespace mica;

CarriedChains::CarriedChains(ArrayRef<func::CallOp> calls) {
  unsigned nodes = 0;
  for (func::CallOp call : calls)
    if (firstNodes.try_emplace(call.getCalleeAttr(), nodes).second)
      nodes += call.getNumOperands() + call.getNumResults();
  classes.grow(nodes);
  isJoined.resize(nodes);
  for (func::CallOp call : calls)
    for (OpOperand &operand : call->getOpOperands()) {
      auto maker = operand.get().getDefiningOp<func::CallOp>();
      if (!maker || !firstNodes.contains(maker.getCalleeAttr()))
        continue;
      unsigned taken = nodeOf(operand), given = nodeOf(cast<OpResult>(operand.get()));
      classes.join(taken, given);
      isJoined.set(taken);
      isJoined.set(given);
    }
  classes.compress();
}

std::optional<unsigned> CarriedChains::of(OpOperand &operand) const {
  return chainOf(nodeOf(operand));
}

std::optional<unsigned> CarriedChains::of(OpResult result) const { return chainOf(nodeOf(result)); }

unsigned CarriedChains::nodeOf(OpOperand &operand) const {
  return firstNodes.at(cast<func::CallOp>(operand.getOwner()).getCalleeAttr()) +
         operand.getOperandNumber();
}

unsigned CarriedChains::nodeOf(OpResult result) const {
  auto call = cast<func::CallOp>(result.getOwner());
  return firstNodes.at(call.getCalleeAttr()) + call.getNumOperands() + result.getResultNumber();
}

std::optional<unsigned> CarriedChains::chainOf(unsigned node) const {
  return isJoined[node] ? std::optional(classes[node]) : std::nullopt;
}

InterleavedLayers InterleavedLayers::find(ArrayRef<func::CallOp> calls,
                                          const CarriedChains &chains) {
  InterleavedLayers layers(chains);
  for (func::CallOp call : calls)
    if (!layers.append(call))
      break;
  // After the loop, only the final values of the chains are available.
  for (auto [number, call] : llvm::enumerate(layers.calls))
    if (number + 1 < layers.calls.size() && llvm::any_of(call->getResults(), [&](OpResult result) {
          return layers.isLiveAfter(result);
        }))
      return find(calls.take_front(number + 1), chains);
  return layers;
}

/// Whether `result` is needed after the calls but not carried by a chain.
bool InterleavedLayers::isLiveAfter(OpResult result) const {
  std::optional<unsigned> chain = flow->of(result);
  if (chain && chains.find(*chain)->second.now == result)
    return false;
  return !llvm::all_of(result.getUsers(),
                       [&](Operation *user) { return llvm::is_contained(calls, user); });
}

/// Whether this operand is the same in all calls of the function, or varies only by a constant or a
/// weight, which a table can select.
bool InterleavedLayers::isUniform(OpOperand &operand) const {
  auto call = cast<func::CallOp>(operand.getOwner());
  auto kind = callsByFunction.find(call.getCalleeAttr());
  if (kind == callsByFunction.end())
    return true;
  func::CallOp first = kind->second.front();
  Value before = first.getOperand(operand.getOperandNumber()), after = operand.get();
  return before == after || (getConstant(before) && getConstant(after)) ||
         (before.getDefiningOp<GetWeightOp>() && after.getDefiningOp<GetWeightOp>());
}

/// Adds the call; returns false if a loop cannot execute it together with the previous ones.
bool InterleavedLayers::append(func::CallOp call) {
  auto next = chains;
  for (OpOperand &operand : call->getOpOperands()) {
    std::optional<unsigned> chain = flow->of(operand);
    if (!chain) {
      if (!isUniform(operand))
        return false;
      continue;
    }
    auto [entry, isNew] = next.try_emplace(*chain, Chain{&operand, operand.get()});
    if (!isNew && entry->second.now != operand.get())
      return false;
  }
  for (OpResult result : call->getResults()) {
    std::optional<unsigned> chain = flow->of(result);
    if (!chain && result.use_empty())
      continue;
    auto *entry = chain ? next.find(*chain) : next.end();
    if (entry == next.end() || entry->second.now.getDefiningOp() == call)
      return false;
    entry->second.now = result;
    entry->second.isReplaced = true;
  }
  // A second tensor would need a separate buffer while the first is computed.
  if (llvm::count_if(next, [](const auto &chain) {
        return chain.second.isReplaced && isa<RankedTensorType>(chain.second.now.getType());
      }) > 1)
    return false;
  chains = std::move(next);
  calls.push_back(call);
  callsByFunction[call.getCalleeAttr()].push_back(call);
  return true;
}

namespace mica {
/// Creates the loop nest of one InterleavedLayers.
class InterleavedRoller {
public:
  InterleavedRoller(IRRewriter &rewriter, const InterleavedLayers &layers)
      : rewriter(rewriter), layers(layers), loc(fuse(layers.calls)) {}

  LogicalResult roll() {
    if (failed(moveBefore(rewriter, layers.calls.front(), findFirst())))
      return failure();
    rewriter.setInsertionPoint(layers.calls.front());
    findRounds();
    SmallVector<unsigned> carried;
    SmallVector<Value> inits;
    for (auto &[number, chain] : layers.chains) {
      chains[number] = chain.first->get();
      if (!chain.isReplaced)
        continue;
      carried.push_back(number);
      inits.push_back(chains[number]);
    }
    zero = constant(0);
    one = constant(1);
    auto loop = writeLoop(loc, zero, constant(rounds), carried, [&](Value round) {
      Value next = arith::AddIOp::create(rewriter, loc, round, one);
      for (auto &[function, calls] : layers.callsByFunction)
        writeKind(calls, round, next);
    });
    for (auto [number, result] : llvm::zip_equal(carried, loop.getResults()))
      rewriter.replaceAllUsesWith(layers.chains.find(number)->second.now, result);
    eraseCalls(rewriter, layers.calls);
    return success();
  }

private:
  Location fuse(ArrayRef<func::CallOp> calls) {
    return rewriter.getFusedLoc(
        llvm::map_to_vector(calls, [](func::CallOp call) { return call.getLoc(); }));
  }

  Value constant(int64_t value) { return arith::ConstantIndexOp::create(rewriter, loc, value); }

  /// Values that must be defined before the first call: the initial values of chains, and operands
  /// that are not carried.
  SmallVector<Value> findFirst() const {
    SmallVector<Value> values;
    for (auto &[number, chain] : layers.chains)
      values.push_back(chain.first->get());
    for (auto &[function, calls] : layers.callsByFunction)
      for (OpOperand &operand : func::CallOp(calls.front())->getOpOperands())
        if (!layers.flow->of(operand))
          values.push_back(operand.get());
    return values;
  }

  /// Assigns calls to rounds. Every function occurs once in a round, in the order of their first
  /// calls.
  void findRounds() {
    const auto *last = layers.callsByFunction.end();
    rounds = 0;
    for (func::CallOp call : layers.calls) {
      const auto *kind = layers.callsByFunction.find(call.getCalleeAttr());
      if (rounds == 0 || kind < last)
        ++rounds;
      last = kind;
      auto &ends = layersUpTo[call.getCalleeAttr()];
      int64_t before = ends.empty() ? 0 : ends.back();
      ends.resize(rounds + 1, before);
      ++ends.back();
    }
    for (auto &[function, ends] : layersUpTo)
      ends.resize(rounds + 1, ends.back());
  }

  /// Creates a loop that carries the given chains; `write` creates its body, given the induction
  /// variable.
  scf::ForOp writeLoop(Location place, Value from, Value to, ArrayRef<unsigned> carried,
                       llvm::function_ref<void(Value)> write) {
    auto standing = [&] {
      return llvm::map_to_vector(carried, [&](unsigned chain) { return chains.at(chain); });
    };
    auto loop = scf::ForOp::create(rewriter, place, from, to, one, standing());
    for (auto [chain, value] : llvm::zip_equal(carried, loop.getRegionIterArgs()))
      chains[chain] = value;
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      write(loop.getInductionVar());
      if (!carried.empty())
        scf::YieldOp::create(rewriter, place, standing());
    }
    for (auto [chain, value] : llvm::zip_equal(carried, loop.getResults()))
      chains[chain] = value;
    return loop;
  }

  /// Creates the inner loop of one function in a round.
  void writeKind(ArrayRef<func::CallOp> calls, Value round, Value next) {
    func::CallOp model = calls.front();
    Location place = fuse(calls);
    const std::vector<int64_t> &ends = layersUpTo[model.getCalleeAttr()];
    Value from = IndexTableOp::create(rewriter, place, rewriter.getIndexType(), ends, round),
          to = IndexTableOp::create(rewriter, place, rewriter.getIndexType(), ends, next);
    SmallVector<unsigned> carried;
    for (OpResult result : model->getResults())
      if (std::optional<unsigned> chain = layers.flow->of(result))
        carried.push_back(*chain);
    writeLoop(place, from, to, carried, [&](Value number) {
      SmallVector<Value> operands;
      for (OpOperand &operand : model->getOpOperands())
        operands.push_back(operandOf(operand, calls, number));
      auto call = func::CallOp::create(rewriter, place, model.getResultTypes(),
                                       model.getCalleeAttr(), operands);
      for (OpResult result : model->getResults())
        if (std::optional<unsigned> chain = layers.flow->of(result))
          chains[*chain] = call.getResult(result.getResultNumber());
    });
  }

  /// The value that replaces `operand`, an operand of the first of `calls`, in call `number` of
  /// them.
  Value operandOf(OpOperand &operand, ArrayRef<func::CallOp> calls, Value number) {
    if (std::optional<unsigned> chain = layers.flow->of(operand))
      return chains.at(*chain);
    SmallVector<Value> values = llvm::map_to_vector(
        calls, [&](func::CallOp call) { return call->getOperand(operand.getOperandNumber()); });
    if (llvm::all_equal(values))
      return values.front();
    if (values.front().getDefiningOp<GetWeightOp>())
      return selectWeight(rewriter, values, number);
    SmallVector<int64_t> numbers =
        llvm::map_to_vector(values, [](Value value) { return *getConstant(value); });
    if (llvm::all_equal(numbers))
      return values.front();
    if (llvm::equal(numbers, llvm::seq<int64_t>(0, numbers.size())))
      return number;
    return IndexTableOp::create(rewriter, operand.get().getLoc(), rewriter.getIndexType(), numbers,
                                number);
  }

  IRRewriter &rewriter;
  const InterleavedLayers &layers;
  Location loc;
  Value zero, one;
  llvm::DenseMap<unsigned, Value> chains; ///< value of each chain at the insertion point
  int64_t rounds = 0;
  /// For each function, the number of its layers before each round and after the last.
  llvm::DenseMap<Attribute, std::vector<int64_t>> layersUpTo;
};
} // namespace mica

LogicalResult InterleavedLayers::roll(IRRewriter &rewriter) const {
  return InterleavedRoller(rewriter, *this).roll();
}
