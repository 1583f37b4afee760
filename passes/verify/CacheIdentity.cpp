//===- CacheIdentity.cpp - caches are returned, layers appended to once ---===//
//
// A program keeps its caches where they are and gets nothing back for them. That is what the IR
// says only if an entry returns each cache, appended to, in the place in which it received it.
//
// A step writes every layer of a cache once at most: a second append would take the place of what
// an earlier layer has stored there for the steps to come.
//
//===----------------------------------------------------------------------===//

#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/EntrySignature.h"
#include "passes/verify/Checks.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"

#include <map>

using namespace mlir;
using namespace mica;

namespace {
/// Follows caches back to where they came from. Calls have an end: see verifyNoRecursion.
class CacheOrigins {
public:
  /// The argument of a function that `cache` was before all appends, or nothing.
  BlockArgument argumentOf(Value cache) {
    BlockArgument origin = originOf(cache);
    while (origin) {
      auto loop = dyn_cast<scf::ForOp>(origin.getOwner()->getParentOp());
      if (!loop)
        break;
      origin = originOf(loop.getTiedLoopInit(origin)->get());
    }
    return origin;
  }

  /// The argument of a function or of a loop's iteration that `cache` was before all appends, or
  /// nothing.
  BlockArgument originOf(Value cache) {
    SmallVector<Value> passed;
    while (cache && !isa<BlockArgument>(cache)) {
      auto known = origins.find(cache);
      if (known != origins.end()) {
        cache = known->second;
        break;
      }
      passed.push_back(cache);
      cache = followBack(cast<OpResult>(cache));
    }
    auto origin = dyn_cast_or_null<BlockArgument>(cache);
    // The cache of a deep model passes through as many calls: each is followed once.
    for (Value value : passed)
      origins[value] = origin;
    return origin;
  }

private:
  /// The same cache one step earlier, or nothing.
  Value followBack(OpResult cache) {
    Operation *op = cache.getOwner();
    if (auto update = dyn_cast<UpdatesState>(op))
      return update.getStateBefore(cache);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      return followLoop(loop, cache.getResultNumber());
    if (auto call = dyn_cast<func::CallOp>(op))
      return followCall(call, cache.getResultNumber());
    return {};
  }

  /// A loop must pass the cache of an iteration to the same argument of the next iteration.
  Value followLoop(scf::ForOp loop, unsigned index) {
    BlockArgument carried = loop.getRegionIterArg(index);
    return originOf(loop.getYieldedValues()[index]) == carried ? loop.getInitArgs()[index]
                                                               : Value();
  }

  /// The operand that a call hands back as result `index`.
  Value followCall(func::CallOp call, unsigned index) {
    auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
    auto [entry, isNew] = returned.try_emplace({callee, index});
    if (isNew && callee.getBody().hasOneBlock()) {
      Operation *ret = callee.getBody().front().getTerminator();
      BlockArgument origin = originOf(ret->getOperand(index));
      // Following the callee may have moved the map's entries.
      returned[{callee, index}] = origin;
      return origin ? call.getOperand(origin.getArgNumber()) : Value();
    }
    return entry->second ? call.getOperand(entry->second.getArgNumber()) : Value();
  }

  DenseMap<Value, BlockArgument> origins;
  DenseMap<std::pair<Operation *, unsigned>, BlockArgument> returned;
};
} // namespace

namespace {
/// Runs calls and loops with the layer indices and nothing else, to find what is appended to.
class LayerWrites {
public:
  LayerWrites(ModuleOp module, CacheOrigins &origins) : module(module), origins(origins) {}

  LogicalResult verify(func::FuncOp entry) { return success(writesOf(entry, {}) != nullptr); }

private:
  /// Argument of a function and layer of that cache => the op of the function that writes it.
  using Writes = std::map<std::pair<unsigned, int64_t>, Operation *>;
  using Numbers = DenseMap<Value, int64_t>;

  /// What `function` writes when its arguments are `numbers`; null after an error. Functions that
  /// are called alike are run once.
  const Writes *writesOf(func::FuncOp function, ArrayRef<std::optional<int64_t>> numbers) {
    auto [entry, isNew] = known.try_emplace(
        {function, std::vector<std::optional<int64_t>>(numbers.begin(), numbers.end())});
    if (isNew) {
      Numbers values;
      for (auto [argument, number] : llvm::zip(function.getArguments(), numbers))
        if (number)
          values[argument] = *number;
      if (failed(run(function.getBody(), values, entry->second)))
        return nullptr;
    }
    return &entry->second;
  }

  LogicalResult run(Region &region, Numbers &values, Writes &writes) {
    for (Operation &op : region.getOps()) {
      LogicalResult done =
          TypeSwitch<Operation *, LogicalResult>(&op)
              .Case([&](UpdatesState update) { return writeAll(update, values, writes); })
              .Case([&](func::CallOp call) { return runCall(call, values, writes); })
              .Case([&](scf::ForOp loop) { return runLoop(loop, values, writes); })
              .Default([&](Operation *other) { return evaluate(other, values, writes); });
      if (failed(done))
        return failure();
    }
    return success();
  }

  LogicalResult writeAll(UpdatesState op, const Numbers &values, Writes &writes) {
    for (const StateUpdate &update : op.getStateUpdates())
      if (failed(write(op, update.state, find(values, update.layer), writes)))
        return failure();
    return success();
  }

  LogicalResult runCall(func::CallOp call, const Numbers &values, Writes &writes) {
    SmallVector<std::optional<int64_t>> numbers;
    for (Value operand : call.getOperands())
      numbers.push_back(find(values, operand));
    const Writes *inner =
        writesOf(module.lookupSymbol<func::FuncOp>(call.getCalleeAttr().getAttr()), numbers);
    if (!inner)
      return failure();
    for (auto [place, op] : *inner)
      if (failed(write(call, call.getOperand(place.first), place.second, writes)))
        return failure();
    return success();
  }

  /// Whether something in a region, or in what it calls, appends to a cache.
  bool mayWrite(Region &region) {
    return region
        .walk([&](Operation *op) {
          bool writes = isa<UpdatesState>(op);
          if (auto call = dyn_cast<func::CallOp>(op)) {
            auto callee = module.lookupSymbol<func::FuncOp>(call.getCalleeAttr().getAttr());
            auto entry = writing.find(callee);
            if (entry == writing.end())
              entry = writing.try_emplace(callee, mayWrite(callee.getBody())).first;
            writes = entry->second;
          }
          return writes ? WalkResult::interrupt() : WalkResult::advance();
        })
        .wasInterrupted();
  }

  /// A loop that runs too long writes a layer twice; one over layers of several kinds has
  /// iterations that write nothing. One whose number of iterations is not known may well take two.
  LogicalResult runLoop(scf::ForOp loop, Numbers &values, Writes &writes) {
    if (!mayWrite(loop.getRegion()))
      return success();
    std::optional<int64_t> first = find(values, loop.getLowerBound()),
                           end = find(values, loop.getUpperBound()),
                           step = find(values, loop.getStep());
    bool isKnown = first && end && step && *step > 0 && !loop.getUnsignedCmp();
    if (isKnown && *first >= *end)
      return success();
    int64_t iterations = isKnown ? static_cast<int64_t>(llvm::divideCeil(
                                       static_cast<uint64_t>(*end) - static_cast<uint64_t>(*first),
                                       static_cast<uint64_t>(*step)))
                                 : 2;
    // Of another run of this loop, whose bounds were known.
    values.erase(loop.getInductionVar());
    for (int64_t iteration = 0, idle = 0; iteration < iterations; ++iteration) {
      if (idle == kMaxEmptyIterations)
        return loop.emitOpError("runs ")
               << kMaxEmptyIterations
               << " iterations in a row that append to no cache, leave out the empty iterations";
      if (isKnown)
        values[loop.getInductionVar()] = *first + iteration * *step;
      size_t before = writes.size();
      if (failed(run(loop.getRegion(), values, writes)))
        return failure();
      idle = writes.size() == before ? idle + 1 : 0;
    }
    return success();
  }

  /// An op on numbers, or branches, each of which may run.
  LogicalResult evaluate(Operation *op, Numbers &values, Writes &writes) {
    // In a loop's next iteration they may be others, or known no more.
    for (Value result : op->getResults())
      values.erase(result);
    for (Region &region : op->getRegions())
      if (failed(run(region, values, writes)))
        return failure();
    auto arithmetic = dyn_cast<InferIntRangeInterface>(op);
    if (!arithmetic ||
        !llvm::all_of(op->getOperandTypes(), [](Type type) { return type.isIntOrIndex(); }))
      return success();
    SmallVector<ConstantIntRanges> operands;
    for (Value operand : op->getOperands()) {
      unsigned width = ConstantIntRanges::getStorageBitwidth(operand.getType());
      std::optional<int64_t> number = find(values, operand);
      operands.push_back(number
                             ? ConstantIntRanges::constant(APInt(width, *number, /*isSigned=*/true,
                                                                 /*implicitTrunc=*/true))
                             : ConstantIntRanges::maxRange(width));
    }
    arithmetic.inferResultRanges(operands, [&](Value result, const ConstantIntRanges &range) {
      if (std::optional<APInt> number = range.getConstantValue())
        values[result] = number->getSExtValue();
    });
    return success();
  }

  static std::optional<int64_t> find(const Numbers &values, Value value) {
    auto found = values.find(value);
    return found == values.end() ? std::nullopt : std::optional<int64_t>(found->second);
  }

  LogicalResult write(Operation *op, Value cache, std::optional<int64_t> layer, Writes &writes) {
    if (!layer)
      return op->emitOpError("appends to a layer whose number is not a constant in every call, so "
                             "the layers that a step writes are not known");
    BlockArgument argument = origins.argumentOf(cache);
    if (!argument)
      return success();
    auto [earlier, isNew] = writes.try_emplace({argument.getArgNumber(), *layer}, op);
    if (isNew)
      return success();
    InFlightDiagnostic diagnostic = op->emitOpError("appends to layer ");
    diagnostic << *layer << " of a cache that " << earlier->second->getName() << " ("
               << describePlace(earlier->second->getLoc())
               << ") has appended to in the same step: use a different index for each layer";
    diagnostic.attachNote(earlier->second->getLoc()) << "the first append to it is here";
    return diagnostic;
  }

  /// No loop over layers has that many consecutive iterations that write nothing.
  static constexpr int64_t kMaxEmptyIterations = 1000;

  ModuleOp module;
  CacheOrigins &origins;
  std::map<std::pair<Operation *, std::vector<std::optional<int64_t>>>, Writes> known;
  DenseMap<Operation *, bool> writing; ///< functions: mayWrite of their bodies
};
} // namespace

/// Results and caches have the same types in the same order: see verifyEntries.
static LogicalResult verifyEntry(func::FuncOp entry, CacheOrigins &origins) {
  EntrySignature signature(entry);
  SmallVector<BlockArgument> caches = signature.states();
  SmallVector<unsigned> results = signature.stateResults();
  WalkResult result = entry.walk([&](func::ReturnOp op) -> WalkResult {
    for (auto [index, cache, place] : llvm::enumerate(caches, results))
      if (origins.originOf(op.getOperand(place)) != cache)
        return op.emitOpError("returns as cache ")
               << index << " another one than it received there: return every cache, appended to, "
               << "in its own place";
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

LogicalResult mica::verifySingleAppend(ModuleOp module) {
  CacheOrigins origins;
  LayerWrites writes(module, origins);
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && failed(writes.verify(function)))
      return failure();
  return success();
}

LogicalResult mica::verifyCachesReturned(ModuleOp module) {
  CacheOrigins origins;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && failed(verifyEntry(function, origins)))
      return failure();
  return success();
}
