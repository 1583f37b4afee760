//===- Shard.cpp - models that several ranks run --------------------------===//

#include "ir/Mica/Shard.h"
#include "ir/Mica/Verify.h"

using namespace mlir;
using namespace mica;

int64_t mica::getRanks(ModuleOp module) {
  auto ranks = module->getAttrOfType<IntegerAttr>(kRanksAttr);
  return ranks ? ranks.getInt() : 1;
}

std::optional<int64_t> mica::partsOfHeads(int64_t heads, int64_t ranks) {
  if (heads % ranks == 0)
    return ranks;
  if (ranks % heads == 0)
    return heads;
  return std::nullopt;
}

std::optional<int64_t> KvCacheType::getPartsOfRanks(int64_t ranks) {
  return partsOfHeads(getHeads(), ranks);
}

/// Channels are independent of each other. Ranks store all of them if their number does not divide:
/// they are few.
std::optional<int64_t> RollingStateType::getPartsOfRanks(int64_t ranks) {
  return getChannels() % ranks == 0 ? ranks : 1;
}

/// Ranks never share a head, because each of them would update it.
std::optional<int64_t> RecurrentStateType::getPartsOfRanks(int64_t ranks) {
  if (getHeads() % ranks == 0)
    return ranks;
  return std::nullopt;
}

LogicalResult mica::verifyRanks(Operation *op, int64_t ranks) {
  auto module = op->getParentOfType<ModuleOp>();
  int64_t stated = module ? getRanks(module) : 1;
  if (ranks > 1 && ranks == stated)
    return success();
  return op->emitOpError() << "is partitioned for " << ranks << " ranks, but " << kRanksAttr
                           << " of the module is " << stated;
}

LogicalResult ShardAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t axis,
                                int64_t ranks, int64_t replicas) {
  if (axis < 0)
    return emitError() << "the axis of a shard is negative: " << axis;
  if (ranks < 2)
    return emitError() << "a shard is a part for one of at least 2 ranks, got " << ranks;
  if (replicas < 1 || replicas >= ranks || ranks % replicas != 0)
    return emitError() << "a shard has " << replicas << " replicas, expected a divisor of the "
                       << ranks << " ranks below it";
  return success();
}

/// Fails unless `size` on each of the `ranks` is enough for `whole`, and not more.
static LogicalResult requirePart(Operation *op, int64_t size, int64_t whole, int64_t ranks) {
  int64_t part = llvm::divideCeil(whole, ranks);
  return requireSize(op, "the part of a rank", size, part, "the whole by ranks, rounded up");
}

/// `part` has some columns of `whole`.
template <typename Op> static LogicalResult verifyColumns(Op op, Value part, Value whole) {
  if (failed(verifyRanks(op, op.getRanks())))
    return failure();
  RankedTensorType x = shapeOf(op.getX()), result = shapeOf(op.getResult());
  if (x.getElementType() != result.getElementType() ||
      x.getShape().drop_back() != result.getShape().drop_back())
    return op.emitOpError() << "makes " << result << " of " << x
                            << ", which differ in more than their last axes";
  if (lastDim(whole) < 1)
    return op.emitOpError() << "the whole has size " << lastDim(whole) << ", expected at least 1";
  return requirePart(op, lastDim(part), lastDim(whole), op.getRanks());
}

LogicalResult AllGatherOp::verify() { return verifyColumns(*this, getX(), getResult()); }

LogicalResult AllSliceOp::verify() { return verifyColumns(*this, getResult(), getX()); }

LogicalResult ShardedEmbeddingOp::verify() {
  if (failed(verifyRanks(*this, getRanks())) ||
      failed(requirePart(*this, shapeOf(getTable()).getDimSize(0), getRows(), getRanks())) ||
      failed(requireSameRows(*this, getTokens(), getResult())))
    return failure();
  return requireSize(*this, "a row of the result", lastDim(getResult()), lastDim(getTable()),
                     "a row of the table");
}
