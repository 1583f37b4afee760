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
/// Moves rope tables whose positions are a function argument to the callers.
class TableHoister {
public:
  explicit TableHoister(MLIRContext *context) : rewriter(context) {}

  /// Moves one table of `function`; fails if none can be moved.
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
  /// The table of `positions` (and `lengths`, which may be null) with the frequencies of `like`,
  /// inserted right after both and shared by all users.
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

  /// The later of two values, defined in the same block or in nested blocks; `b` may be null.
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
  /// Tables inserted right after their operands, so that they dominate every call.
  llvm::DenseSet<Operation *> tables;
};

/// Removes duplicate tables within a function.
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
    // A table may move up several levels of calls: repeat until none moves.
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
