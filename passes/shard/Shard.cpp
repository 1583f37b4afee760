//===- Shard.cpp - a model that several ranks run -------------------------===//

#include "ir/Mica/Shard.h"
#include "passes/Passes.h"
#include "passes/shard/Sharder.h"
#include "passes/support/Experts.h"

#include "llvm/ADT/TypeSwitch.h"

namespace mica {
#define GEN_PASS_DEF_SHARD
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

LogicalResult Sharder::partitionFunction(func::FuncOp function) {
  if (function.isExternal())
    return success();
  if (!function.getBody().hasOneBlock())
    return refuse(function, "it has several blocks");
  for (Operation &op : llvm::make_early_inc_range(function.front())) {
    ShardRule rule = findShardRule(&op);
    if (!rule)
      return refuse(&op, "there is no rule for this op");
    if (failed(rule(&op, *this)))
      return failure();
  }
  return success();
}

/// The numbers of ranks, at least 2, that the heads of a model allow.
static SmallVector<int64_t> ranksOfHeads(ModuleOp module) {
  // Several ranks may have the same head of keys and values, but not the same state, and not the
  // same query head, whose result is gathered with the others.
  SmallVector<int64_t> heads, undivided;
  module.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](SplitHeadsOp split) { heads.push_back(split.getType().getDimSize(1)); })
        .Case<KvReadOp, RepeatKvOp>(
            [&](auto read) { heads.push_back(read.getType().getDimSize(2)); })
        .Case([&](AttentionOp attention) {
          // All ranks compute a single one.
          if (int64_t queries = cast<RankedTensorType>(attention.getQ().getType()).getDimSize(1);
              queries != 1)
            undivided.push_back(queries);
        })
        .Case([&](LinearAttentionOp attention) {
          undivided.push_back(attention.getState().getType().getHeads());
          if (int64_t keys = cast<RankedTensorType>(attention.getK().getType()).getDimSize(1);
              keys != 1)
            undivided.push_back(keys);
        });
  });
  int64_t max = 1;
  for (int64_t count : llvm::concat<int64_t>(heads, undivided))
    max = std::max(max, count);
  SmallVector<int64_t> possible;
  for (int64_t ranks = 2; ranks <= std::min(max, kMaxRanks); ++ranks)
    if (llvm::all_of(heads,
                     [&](int64_t count) { return partsOfHeads(count, ranks).has_value(); }) &&
        llvm::all_of(undivided, [&](int64_t count) { return count % ranks == 0; }))
      possible.push_back(ranks);
  return possible;
}

LogicalResult Sharder::run() {
  possibleRanks = ranksOfHeads(module); // before any of their types is changed
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(partitionFunction(function)))
      return failure();
  if (failed(partitionWeights()))
    return failure();
  return partitionStates();
}

/// Splits experts into halves, between which ranks exchange the inner activations.
static LogicalResult splitForRanks(MoeExpertsOp op, Sharder &sharder) {
  if (!op.getUp() || op.getResidual())
    return sharder.refuse(op, "it is fused already");
  splitExperts(op, Float32Type::get(op.getContext()));
  return success();
}

namespace {
struct Shard : mica::impl::ShardBase<Shard> {
  using ShardBase::ShardBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    int64_t count = ranks;
    if (count < 1 || count > kMaxRanks) {
      module.emitOpError() << "cannot be partitioned for " << count << " ranks, expected 1 to "
                           << kMaxRanks;
      return signalPassFailure();
    }
    if (count == 1)
      return;
    if (module->hasAttr(kRanksAttr)) {
      module.emitOpError() << "is partitioned already: it has " << kRanksAttr;
      return signalPassFailure();
    }
    if (module.getOps<func::FuncOp>().empty())
      return;
    SmallVector<MoeExpertsOp> experts;
    module.walk([&](MoeExpertsOp op) { experts.push_back(op); });
    Sharder sharder(module, count);
    if (llvm::any_of(experts,
                     [&](MoeExpertsOp op) { return failed(splitForRanks(op, sharder)); }) ||
        failed(sharder.run()))
      return signalPassFailure();
    module->setAttr(kRanksAttr, Builder(module).getI64IntegerAttr(count));
  }
};
} // namespace
