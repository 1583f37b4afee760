//===- CacheIdentity.cpp - caches are returned, layers appended to once ---===//
//
// A program updates its caches in place. The IR has this meaning only if an entry function returns
// each cache, appended to, in the position in which it received it.
//
// A step appends to each layer of a cache at most once: a second append would overwrite what an
// earlier layer has stored there.
//
//===----------------------------------------------------------------------===//

#include "passes/verify/CacheIdentity.h"
#include "ir/Mica/Diagnostics.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/Mica.h"
#include "passes/support/CacheOrigins.h"

#include "mlir/Interfaces/InferIntRangeInterface.h"

#include <map>

using namespace mlir;
using namespace mica;

namespace {
/// Interprets calls and loops, with only integers evaluated, to find the layers that are appended
/// to.
class LayerWrites {
public:
  LayerWrites(ModuleOp module, CacheOrigins &origins) : module(module), origins(origins) {}

  LogicalResult verify(func::FuncOp entry) { return success(writesOf(entry, {}) != nullptr); }

private:
  /// Function argument and layer of that cache => the op of the function that writes it.
  using Writes = std::map<std::pair<unsigned, int64_t>, Operation *>;
  using Numbers = DenseMap<Value, int64_t>;

  /// The layers that `function` writes if its arguments have the values `numbers`; null after an
  /// error. Memoized by function and arguments.
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

  /// Whether an op in a region, or in a function called from it, appends to a cache.
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

  /// A loop with too many iterations appends to a layer twice and is rejected. Loops over several
  /// layer types have iterations that append to nothing. If the number of iterations is unknown,
  /// two are assumed.
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
    // May be set by an earlier run of this loop with known bounds.
    values.erase(loop.getInductionVar());
    for (int64_t iteration = 0, idle = 0; iteration < iterations; ++iteration) {
      if (idle == kMaxEmptyIterations)
        return loop.emitOpError("runs ")
               << kMaxEmptyIterations
               << " consecutive iterations that append to no cache; remove them";
      if (isKnown)
        values[loop.getInductionVar()] = *first + iteration * *step;
      size_t before = writes.size();
      if (failed(run(loop.getRegion(), values, writes)))
        return failure();
      idle = writes.size() == before ? idle + 1 : 0;
    }
    return success();
  }

  /// Evaluates an op on integers. Of ops with regions, runs all regions.
  LogicalResult evaluate(Operation *op, Numbers &values, Writes &writes) {
    // Values from a previous iteration are outdated.
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
      return op->emitOpError("appends to a layer whose index is not a constant in every call, so "
                             "the layers that a step writes are not known");
    BlockArgument argument = origins.argumentOf(cache);
    if (!argument)
      return success();
    auto [earlier, isNew] = writes.try_emplace({argument.getArgNumber(), *layer}, op);
    if (isNew)
      return success();
    InFlightDiagnostic diagnostic = op->emitOpError("appends to layer ");
    diagnostic << *layer << " of a cache that " << earlier->second->getName() << " ("
               << describeLocation(earlier->second->getLoc())
               << ") has appended to in the same step: use a different index for each layer";
    diagnostic.attachNote(earlier->second->getLoc()) << "the first append to it is here";
    return diagnostic;
  }

  /// The maximum number of consecutive iterations that append to nothing; no loop over layers has
  /// that many.
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
