//===- Shard.cpp - a model that several ranks run -------------------------===//

#include "ir/Mica/Shard.h"
#include "passes/Passes.h"
#include "passes/shard/Sharder.h"

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

LogicalResult Sharder::run() {
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(partitionFunction(function)))
      return failure();
  if (failed(partitionWeights()))
    return failure();
  return partitionStates();
}

// moe_experts(x, weights, experts, gate, down, up)
//   => moe_down(moe_gate_up(x, experts, gate, up), weights, experts, down)
static LogicalResult splitExperts(MoeExpertsOp op, Sharder &sharder) {
  if (!op.getUp() || op.getResidual())
    return sharder.refuse(op, "it is fused already");
  OpBuilder builder(op);
  RankedTensorType x = op.getX().getType();
  SmallVector<int64_t> shape(op.getExperts().getType().getShape());
  shape.push_back(op.getInner());
  Value inner = MoeGateUpOp::create(
      builder, op.getLoc(), RankedTensorType::get(shape, builder.getF32Type()), op.getX(),
      op.getExperts(), op.getGate(), op.getUp(), op.getGateBias(), op.getUpBias(),
      op.getActivationAttr(), op.getAlphaAttr(), op.getLimitAttr());
  if (!x.getElementType().isF32())
    inner = CastOp::create(builder, op.getLoc(), RankedTensorType::get(shape, x.getElementType()),
                           inner);
  auto down =
      MoeDownOp::create(builder, op.getLoc(), op.getType(), inner, op.getWeights(), op.getExperts(),
                        op.getDown(), op.getDownBias(), /*residual=*/Value());
  op.replaceAllUsesWith(down.getResult());
  op.erase();
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
    if (llvm::any_of(experts, [&](MoeExpertsOp op) { return failed(splitExperts(op, sharder)); }) ||
        failed(sharder.run()))
      return signalPassFailure();
    module->setAttr(kRanksAttr, Builder(module).getI64IntegerAttr(count));
  }
};
} // namespace
