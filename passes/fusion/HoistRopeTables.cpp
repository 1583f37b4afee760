//===- HoistRopeTables.cpp - one table per step, not per layer ------------===//

#include "ir/Mica/Names.h"
#include "passes/Passes.h"
#include "passes/support/Calls.h"

#include "mlir/IR/Dominance.h"

namespace mica {
#define GEN_PASS_DEF_HOISTROPETABLES
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
/// Moves tables of positions that are an argument out of functions into their callers.
class TableHoister {
public:
  explicit TableHoister(MLIRContext *context) : rewriter(context) {}

  /// Moves one table of `function`; fails when there is none that can be moved.
  LogicalResult hoistOne(func::FuncOp function) {
    auto calls = findCalls(function);
    if (!calls || calls->empty())
      return rewriter.notifyMatchFailure(
          function, "the function may be called from elsewhere or is not called");
    for (auto table : llvm::make_early_inc_range(function.getOps<RopeTableOp>())) {
      auto positions = dyn_cast<BlockArgument>(table.getPositions());
      auto lengths = dyn_cast_or_null<BlockArgument>(table.getLengths());
      if (!positions || !table.getLengths() != !lengths)
        continue;
      SmallVector<Value> values;
      for (func::CallOp call : *calls)
        values.push_back(getTable(call.getOperand(positions.getArgNumber()),
                                  lengths ? call.getOperand(lengths.getArgNumber()) : Value(),
                                  table));
      Value argument =
          insertArgument(rewriter, function, positions.getArgNumber() + 1, table.getType(),
                         nameWithin(function.getLoc(), "rope_table"), *calls, values);
      rewriter.replaceOp(table, argument);
      return success();
    }
    return rewriter.notifyMatchFailure(function, "no table depends on an argument alone");
  }

private:
  /// The table of `positions` (and `lengths`, or null) with the frequencies of `like`, right after
  /// both; shared by all users.
  Value getTable(Value positions, Value lengths, RopeTableOp like) {
    for (Operation *user : positions.getUsers())
      if (auto table = dyn_cast<RopeTableOp>(user);
          table && table.getLengths() == lengths && isSame(table, like) && tables.contains(table))
        return table;
    rewriter.setInsertionPointAfterValue(laterOf(positions, lengths));
    auto table =
        RopeTableOp::create(rewriter, like.getLoc(), like.getType(), positions, lengths,
                            like.getRotaryDimAttr(), like.getThetaAttr(), like.getScalingAttr());
    tables.insert(table);
    return table;
  }

  /// Of two values of one block or of blocks around each other; `b` may be null.
  static Value laterOf(Value a, Value b) {
    Operation *first = a.getDefiningOp(), *second = b ? b.getDefiningOp() : nullptr;
    if (!first || !second)
      return second ? b : a;
    return DominanceInfo().properlyDominates(first, second) ? b : a;
  }

  static bool isSame(RopeTableOp a, RopeTableOp b) {
    return a->getAttrDictionary() == b->getAttrDictionary();
  }

  IRRewriter rewriter;
  /// Tables that directly follow what they are made of and so dominate every call.
  llvm::DenseSet<Operation *> tables;
};

/// Equal tables of one function: the second is the first.
static void shareTables(func::FuncOp function) {
  llvm::DenseMap<std::pair<std::pair<Value, Value>, Attribute>, RopeTableOp> known;
  for (auto table : llvm::make_early_inc_range(function.getOps<RopeTableOp>())) {
    auto [entry, isNew] = known.insert(
        {{{table.getPositions(), table.getLengths()}, table->getAttrDictionary()}, table});
    if (isNew)
      continue;
    table.replaceAllUsesWith(entry->second.getResult());
    table.erase();
  }
}

struct HoistRopeTables : mica::impl::HoistRopeTablesBase<HoistRopeTables> {
  void runOnOperation() override {
    TableHoister hoister(&getContext());
    // A table may climb several calls: once more until all have arrived.
    bool changed = true;
    while (changed) {
      changed = false;
      for (auto function : getOperation().getOps<func::FuncOp>()) {
        shareTables(function);
        while (succeeded(hoister.hoistOne(function)))
          changed = true;
      }
    }
  }
};
} // namespace
