//===- Sharder.cpp - what is known of a module that is partitioned --------===//

#include "passes/shard/Sharder.h"

#include "ir/Mica/Shard.h"

using namespace mlir;
using namespace mica;

LogicalResult Sharder::refuse(Operation *op, const Twine &reason) const {
  return op->emitOpError() << "cannot be partitioned for " << ranks << " ranks: " << reason;
}

LogicalResult Sharder::refuseHeads(Operation *op, const Twine &reason) const {
  std::string words;
  for (auto [i, count] : llvm::enumerate(possibleRanks))
    words += (i == 0 ? "" : i + 1 == possibleRanks.size() ? " or " : ", ") + std::to_string(count);
  return refuse(op, reason + (possibleRanks.empty()
                                  ? "; no number of ranks is possible"
                                  : "; the heads of the model allow " + words + " ranks"));
}

static RankedTensorType withExtent(RankedTensorType type, int64_t axis, int64_t extent) {
  SmallVector<int64_t> shape(type.getShape());
  shape[axis] = extent;
  return type.clone(shape);
}

void Sharder::setPartition(Value result, Partition partition) {
  if (partition.isReplicated())
    return;
  auto type = cast<RankedTensorType>(result.getType());
  int64_t extent = type.getDimSize(partition.axis);
  partitions[result] = {partition, extent};
  result.setType(withExtent(type, partition.axis, llvm::divideCeil(extent, partition.parts)));
}

LogicalResult Sharder::requireReplicated(OpOperand &operand) {
  Value value = operand.get();
  auto known = partitions.find(value);
  if (known == partitions.end())
    return success();
  auto type = cast<RankedTensorType>(value.getType());
  const auto &[partition, extent] = known->second;
  if (partition.parts != ranks)
    return refuseHeads(operand.getOwner(),
                       "it needs all heads, of which several ranks have the same");
  if (partition.axis != type.getRank() - 1)
    return refuse(operand.getOwner(), "it needs all heads, of which each rank has some");
  Value &whole = gathered[value];
  if (!whole) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    whole = AllGatherOp::create(builder, value.getLoc(), withExtent(type, partition.axis, extent),
                                value, ranks);
  }
  operand.set(whole);
  return success();
}

void Sharder::sliceColumns(OpOperand &operand) {
  OpBuilder builder(operand.getOwner());
  auto type = cast<RankedTensorType>(operand.get().getType());
  int64_t axis = type.getRank() - 1;
  Value slice = AllSliceOp::create(builder, operand.get().getLoc(), type, operand.get(), ranks);
  setPartition(slice, {ranks, axis});
  operand.set(slice);
}

LogicalResult Sharder::requireAllReplicated(Operation *op) {
  for (OpOperand &operand : op->getOpOperands())
    if (failed(classifyWeightUse(operand) == WeightUse::None
                   ? requireReplicated(operand)
                   : requirePart(operand.get(), Partition(), op)))
      return failure();
  return success();
}

LogicalResult Sharder::requirePart(Value weight, Partition partition, Operation *op) {
  if (!weight)
    return success();
  auto shard = partition.isReplicated() ? ShardAttr()
                                        : ShardAttr::get(op->getContext(), partition.axis, ranks,
                                                         ranks / partition.parts);
  if (shard)
    parts.emplace_back(weight, shard);
  return weights.require(weight,
                         shard ? Attribute(shard) : StringAttr::get(op->getContext(), "all"), op);
}

static bool isComposedOfSeveral(WeightOp weight) {
  return weight.getSourceList().size() > 1 && weight.getCompose() != Compose::Stack;
}

bool Sharder::isComposed(Value weight) {
  return llvm::any_of(weights.sameAs(weight), [&](Value same) {
    WeightOp symbol = weights.symbolOf(same);
    return symbol && isComposedOfSeveral(symbol);
  });
}

/// Weights get the types of their parts, and say which these are.
LogicalResult Sharder::partitionWeights() {
  llvm::MapVector<Operation *, ShardAttr> symbols;
  for (auto [value, shard] : parts)
    for (Value same : weights.sameAs(value))
      if (WeightOp weight = weights.symbolOf(same))
        symbols[weight] = shard;
  for (auto [op, shard] : symbols) {
    auto weight = cast<WeightOp>(op);
    if (isComposedOfSeveral(weight))
      return refuse(weight,
                    "it is composed of several tensors, whose parts do not form a part of it");
    if (weight.getTensorType().getEncoding())
      return refuse(weight, "it has a layout already");
    weight.setShardAttr(shard);
  }
  weights.apply([](RankedTensorType type, Attribute property) {
    auto shard = dyn_cast<ShardAttr>(property);
    if (!shard)
      return type;
    int64_t axis = shard.getAxis();
    return withExtent(type, axis, llvm::divideCeil(type.getDimSize(axis), shard.getParts()));
  });
  return success();
}

/// Caches and states hold the heads, or channels, that a rank computes.
LogicalResult Sharder::partitionStates() {
  convertStates(module, [&](SequenceState state, Value) -> Type {
    // The rules of the ops that update it have refused a state that has no parts.
    std::optional<int64_t> parts = state.getPartsOfRanks(ranks);
    return parts ? state.getPart(*parts) : state;
  });
  return success();
}
