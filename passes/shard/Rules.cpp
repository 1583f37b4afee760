//===- Rules.cpp - how each op is partitioned for several ranks -----------===//
//
// Columns are partitioned, never the sums of products: a rank has some rows of a weight [N, K], all
// of the rows that it multiplies, and computes some columns of the result. So every number is
// computed by one rank, as one rank alone would compute it.
//
//===----------------------------------------------------------------------===//

#include "passes/shard/Sharder.h"

#include "ir/Mica/Shard.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mica;

static RankedTensorType tensorOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// All of the operands, all of the results.
static LogicalResult replicate(Operation *op, Sharder &sharder) {
  return sharder.requireAllReplicated(op);
}

/// A part of the results of the same part of the operands. What all ranks have, as the residual
/// stream at the beginning of a layer, is partitioned like the others.
static LogicalResult partitionElementwise(Operation *op, Sharder &sharder) {
  Partition partition;
  for (Value x : op->getOperands())
    if (partition.isReplicated())
      partition = sharder.partitionOf(x);
  bool isColumns = partition == Partition{sharder.ranks, tensorOf(op->getResult(0)).getRank() - 1};
  for (OpOperand &operand : op->getOpOperands()) {
    if (sharder.partitionOf(operand.get()) == partition)
      continue;
    if (!isColumns || !sharder.partitionOf(operand.get()).isReplicated())
      return sharder.requireAllReplicated(op);
    sharder.sliceColumns(operand);
  }
  sharder.setPartition(op->getResult(0), partition);
  return success();
}

/// Integers have a scale for some neighboring elements of the last axis, which a partition along it
/// could separate.
static LogicalResult partitionCast(CastOp op, Sharder &sharder) {
  bool isAlongGroups = sharder.partitionOf(op.getX()).axis == tensorOf(op.getX()).getRank() - 1;
  return isAlongGroups && isQuantized(op.getType().getElementType())
             ? replicate(op, sharder)
             : partitionElementwise(op, sharder);
}

/// The same part of the result as of x.
template <typename Op> static LogicalResult partitionAlike(Op op, Sharder &sharder) {
  sharder.setPartition(op.getResult(), sharder.partitionOf(op.getX()));
  return success();
}

/// A gate for each row is the same for all columns.
static LogicalResult partitionSigmoidGate(SigmoidGateOp op, Sharder &sharder) {
  if (tensorOf(op.getGate()).getDimSize(1) == tensorOf(op.getX()).getDimSize(1))
    return partitionElementwise(op, sharder);
  if (failed(sharder.requireReplicated(op.getGateMutable())))
    return failure();
  return partitionAlike(op, sharder);
}

/// The number of heads that columns are split into later, if they are split into some, or 0.
static int64_t headsOf(Value columns) {
  for (Operation *user : columns.getUsers()) {
    if (auto split = dyn_cast<SplitHeadsOp>(user))
      return split.getType().getDimSize(1);
    if (user->hasTrait<OpTrait::SameOperandsAndResultType>() || isa<CastOp>(user))
      if (int64_t heads = headsOf(user->getResult(0)))
        return heads;
  }
  return 0;
}

/// How columns are partitioned: by heads, where they are heads. There is no benefit where there are
/// fewer columns than ranks.
static Partition partitionOfColumns(Value columns, Sharder &sharder) {
  if (int64_t heads = headsOf(columns))
    if (std::optional<int64_t> parts = partsOfHeads(heads, sharder.ranks))
      return {*parts, 1};
  return tensorOf(columns).getDimSize(1) < sharder.ranks ? Partition()
                                                         : Partition{sharder.ranks, 1};
}

/// Some columns of the product: rows of the weight, elements of the bias. All of them if the weight
/// is composed of several tensors.
static LogicalResult partitionProduct(Operation *op, OpOperand &x, Value weight, Value bias,
                                      Sharder &sharder) {
  Value result = op->getResult(0);
  Partition partition =
      sharder.isComposed(weight) ? Partition() : partitionOfColumns(result, sharder);
  Partition ofRows{partition.parts, 0};
  if (failed(sharder.requireReplicated(x)) || failed(sharder.requirePart(weight, ofRows, op)) ||
      failed(sharder.requirePart(bias, ofRows, op)))
    return failure();
  sharder.setPartition(result, partition);
  return success();
}

static LogicalResult partitionLinear(LinearOp op, Sharder &sharder) {
  if (op.getResidual() || op.getKernel())
    return sharder.refuse(op, "it has a residual or a kernel already");
  return partitionProduct(op, op.getXMutable(), op.getWeight(), op.getBias(), sharder);
}

static LogicalResult partitionLmHead(LmHeadOp op, Sharder &sharder) {
  if (op.getKernel())
    return sharder.refuse(op, "it has a kernel already");
  return partitionProduct(op, op.getXMutable(), op.getWeight(), Value(), sharder);
}

// embedding(tokens, table) => sharded_embedding(tokens, part of the table)
static LogicalResult partitionEmbedding(EmbeddingOp op, Sharder &sharder) {
  if (failed(sharder.requirePart(op.getTable(), {sharder.ranks, 0}, op)))
    return failure();
  OpBuilder builder(op);
  auto next =
      ShardedEmbeddingOp::create(builder, op.getLoc(), op.getType(), op.getTokens(), op.getTable(),
                                 tensorOf(op.getTable()).getDimSize(0), sharder.ranks);
  op.replaceAllUsesWith(next.getResult());
  op.erase();
  return success();
}

/// The number of parts of `heads`, which `op` needs in parts.
static FailureOr<int64_t> requirePartsOfHeads(Operation *op, int64_t heads, Sharder &sharder) {
  if (std::optional<int64_t> parts = partsOfHeads(heads, sharder.ranks))
    return *parts;
  return sharder.refuseHeads(
      op, Twine(heads) + " heads are neither a multiple nor a divisor of the number of ranks");
}

/// Some of the heads, as many of each rank; all of them if there are fewer than ranks and a rank
/// does not have the columns of one.
static LogicalResult partitionSplitHeads(SplitHeadsOp op, Sharder &sharder) {
  FailureOr<int64_t> parts = requirePartsOfHeads(op, op.getType().getDimSize(1), sharder);
  if (failed(parts))
    return failure();
  if (*parts == sharder.ranks && sharder.partitionOf(op.getX()).isReplicated())
    sharder.sliceColumns(op.getXMutable());
  if (*parts == 1 || !(sharder.partitionOf(op.getX()) == Partition{*parts, 1}))
    return sharder.requireReplicated(op.getXMutable());
  sharder.setPartition(op.getResult(), {*parts, 1});
  return success();
}

/// The same columns of the result and of a vector as of x: of time steps, one for each head.
static LogicalResult partitionWithVector(Operation *op, Sharder &sharder) {
  Value x = op->getOperand(0), vector = op->getOperand(1);
  Partition partition = sharder.partitionOf(x);
  if (failed(sharder.requirePart(vector, {partition.parts, 0}, op)))
    return failure();
  sharder.setPartition(op->getResult(0), partition);
  return success();
}

/// Columns of `operand` that are heads: as a rank has the heads of `partition`.
static LogicalResult requireColumnsOfHeads(OpOperand &operand, Partition partition,
                                           Sharder &sharder) {
  Partition own = sharder.partitionOf(operand.get());
  if (own == partition)
    return success();
  if (partition.isReplicated())
    return sharder.requireReplicated(operand);
  if (!own.isReplicated() || partition.parts != sharder.ranks)
    return sharder.refuse(operand.getOwner(), "its operands have different heads on a rank");
  sharder.sliceColumns(operand);
  return success();
}

/// Factors of a rank's heads.
static LogicalResult partitionScaleHeads(ScaleHeadsOp op, Sharder &sharder) {
  Partition partition = sharder.partitionOf(op.getX());
  if (failed(op.hasWeight() ? sharder.requirePart(op.getFactors(), {partition.parts, 0}, op)
                            : requireColumnsOfHeads(op.getFactorsMutable(), partition, sharder)))
    return failure();
  sharder.setPartition(op.getResult(), partition);
  return success();
}

/// Heads are normalized by themselves, rows are needed in full.
static LogicalResult partitionL2Norm(L2NormOp op, Sharder &sharder) {
  return tensorOf(op.getX()).getRank() == 2 ? replicate(op, sharder) : partitionAlike(op, sharder);
}

/// Some channels, which are independent of each other, of the rows, the filters and the state.
static LogicalResult partitionCausalConv1d(CausalConv1dOp op, Sharder &sharder) {
  int64_t parts = *op.getState().getType().getPartsOfRanks(sharder.ranks);
  if (parts == 1)
    return replicate(op, sharder);
  if (failed(requireColumnsOfHeads(op.getXMutable(), {parts, 1}, sharder)) ||
      failed(sharder.requirePart(op.getWeight(), {parts, 0}, op)) ||
      failed(sharder.requirePart(op.getBias(), {parts, 0}, op)))
    return failure();
  sharder.setPartition(op.getResult(), {parts, 1});
  return success();
}

/// Some heads of v and of the state, and the keys and queries that they read: the same part of
/// them, or a single head for all.
static LogicalResult partitionLinearAttention(LinearAttentionOp op, Sharder &sharder) {
  std::optional<int64_t> parts = op.getState().getType().getPartsOfRanks(sharder.ranks);
  Partition v = sharder.partitionOf(op.getV()), q = sharder.partitionOf(op.getQ()),
            k = sharder.partitionOf(op.getK());
  if (!parts || v.parts != *parts)
    return sharder.refuseHeads(op, "the number of its heads, " +
                                       Twine(op.getState().getType().getHeads()) +
                                       ", is not a multiple of the number of ranks");
  if (!(q == k) || (!(q == v) && tensorOf(op.getK()).getDimSize(1) != 1))
    return sharder.refuseHeads(op, "the number of heads of queries and keys, " +
                                       Twine(tensorOf(op.getK()).getDimSize(1)) +
                                       ", is neither 1 nor a multiple of the number of ranks");
  if (failed(requireColumnsOfHeads(op.getDecayMutable(), v, sharder)))
    return failure();
  for (OpOperand &beta : op.getBetaMutable())
    if (failed(requireColumnsOfHeads(beta, v, sharder)))
      return failure();
  sharder.setPartition(op.getResult(), v);
  return success();
}

/// Heads are normalized by themselves, rows are needed in full.
template <typename Op> static LogicalResult partitionNorm(Op op, Sharder &sharder) {
  if (tensorOf(op.getX()).getRank() == 2)
    return sharder.requireAllReplicated(op);
  Partition partition = sharder.partitionOf(op.getX());
  for (Value vector : op.getVectors())
    if (vector &&
        failed(sharder.requirePart(
            vector, tensorOf(vector).getRank() == 2 ? Partition{partition.parts, 0} : Partition(),
            op)))
      return failure();
  sharder.setPartition(op.getResult(), partition);
  return success();
}

/// A single head is shared by all of the other part, and so by all ranks.
static LogicalResult partitionConcatHeads(ConcatHeadsOp op, Sharder &sharder) {
  Partition a = sharder.partitionOf(op.getA()), b = sharder.partitionOf(op.getB());
  auto isShared = [](Value x) { return tensorOf(x).getDimSize(1) == 1; };
  if (!(a == b) && !(a.isReplicated() && isShared(op.getA())) &&
      !(b.isReplicated() && isShared(op.getB())))
    return sharder.refuse(op, "its two parts have different heads on a rank");
  sharder.setPartition(op.getResult(), a.isReplicated() ? b : a);
  return success();
}

static LogicalResult partitionHeadLinear(HeadLinearOp op, Sharder &sharder) {
  Partition partition = sharder.partitionOf(op.getX());
  if (failed(sharder.requirePart(op.getWeight(), {partition.parts, 0}, op)))
    return failure();
  sharder.setPartition(op.getResult(), partition);
  return success();
}

/// A rank has the heads that it appends.
static LogicalResult partitionKvAppend(KvAppendOp op, Sharder &sharder) {
  KvCacheType cache = op.getCache().getType();
  std::optional<int64_t> parts = cache.getPartsOfRanks(sharder.ranks);
  if (!parts || sharder.partitionOf(op.getX()).parts != *parts)
    return sharder.refuse(op, "a rank has other heads than its cache, which is partitioned by " +
                                  Twine(cache.getHeads()) + " heads");
  return success();
}

static LogicalResult partitionKvRead(KvReadOp op, Sharder &sharder) {
  FailureOr<int64_t> parts = requirePartsOfHeads(op, op.getType().getDimSize(2), sharder);
  if (failed(parts))
    return failure();
  sharder.setPartition(op.getResult(), {*parts, 2});
  return success();
}

/// Each rank repeats its heads for its query heads: where several ranks have the same head, for
/// some of those that read it.
static LogicalResult partitionRepeatKv(RepeatKvOp op, Sharder &sharder) {
  FailureOr<int64_t> parts = requirePartsOfHeads(op, op.getType().getDimSize(2), sharder);
  if (failed(parts))
    return failure();
  sharder.setPartition(op.getResult(), {*parts, 2});
  op.setTimes(tensorOf(op.getResult()).getDimSize(2) / tensorOf(op.getX()).getDimSize(2));
  return success();
}

/// Some query heads, and the keys and values that these read: the same part of them, or a single
/// head that several ranks have.
static LogicalResult partitionAttention(AttentionOp op, Sharder &sharder) {
  Partition q = sharder.partitionOf(op.getQ()), k = sharder.partitionOf(op.getK()),
            v = sharder.partitionOf(op.getV());
  if (!(k == v) || (q.parts != k.parts && tensorOf(op.getK()).getDimSize(2) != 1))
    return sharder.refuse(op, "the query heads of a rank do not read its keys and values");
  if (op.getAlibi() && !q.isReplicated())
    return sharder.refuse(op, "the slopes of alibi are one list for all ranks");
  if (failed(sharder.requirePart(op.getSinks(), {q.parts, 0}, op)))
    return failure();
  sharder.setPartition(op.getResult(), q);
  return success();
}

/// Inside each expert: some columns of gate and up.
static LogicalResult partitionMoeGateUp(MoeGateUpOp op, Sharder &sharder) {
  Partition partition{sharder.ranks, 1};
  if (failed(sharder.requireReplicated(op.getXMutable())))
    return failure();
  for (Value weight : {op.getGate(), op.getUp(), op.getGateBias(), op.getUpBias()})
    if (failed(sharder.requirePart(weight, partition, op)))
      return failure();
  sharder.setPartition(op.getResult(), {sharder.ranks, 2});
  return success();
}

/// Inside each expert: some columns of down.
static LogicalResult partitionMoeDown(MoeDownOp op, Sharder &sharder) {
  Partition partition{sharder.ranks, 1};
  if (failed(sharder.requireReplicated(op.getXMutable())) ||
      failed(sharder.requireReplicated(op.getWeightsMutable())) ||
      failed(sharder.requirePart(op.getDown(), partition, op)) ||
      failed(sharder.requirePart(op.getBias(), partition, op)))
    return failure();
  sharder.setPartition(op.getResult(), partition);
  return success();
}

namespace {
/// From the names of ops to their rules.
class RuleTable {
public:
  RuleTable() {
    addAll<replicate, GetWeightOp, SelectRowsOp, SelectHeadOp, SplitOp, ScalePartsOp, MoeGateOp,
           SinusoidOp, func::CallOp, func::ReturnOp, arith::ConstantOp, tensor::DimOp>();
    addAll<partitionElementwise, AddOp, MulOp, SigmoidOp, ScaleOp, SoftcapOp>();
    addAll<partitionWithVector, SoftplusOp, DecayOp>();
    add(partitionCast);
    add(partitionSigmoidGate);
    add(partitionLinear);
    add(partitionLmHead);
    add(partitionEmbedding);
    add(partitionSplitHeads);
    add(partitionScaleHeads);
    add(partitionL2Norm);
    add(partitionCausalConv1d);
    add(partitionLinearAttention);
    add(partitionAlike<MergeHeadsOp>);
    add(partitionNorm<RmsNormOp>);
    add(partitionNorm<LayerNormOp>);
    add(partitionAlike<RopeOp>);
    add(partitionConcatHeads);
    add(partitionHeadLinear);
    add(partitionKvAppend);
    add(partitionKvRead);
    add(partitionRepeatKv);
    add(partitionAttention);
    add(partitionMoeGateUp);
    add(partitionMoeDown);
  }

  ShardRule find(Operation *op) const {
    if (auto it = rules.find(op->getName().getStringRef()); it != rules.end())
      return it->second;
    return isa<AppliesActivation>(op) ? ShardRule(partitionElementwise) : ShardRule();
  }

private:
  template <LogicalResult (*rule)(Operation *, Sharder &), typename... Ops> void addAll() {
    ((rules[Ops::getOperationName()] = rule), ...);
  }
  template <typename Op> void add(LogicalResult (*rule)(Op, Sharder &)) {
    rules[Op::getOperationName()] = [rule](Operation *op, Sharder &sharder) {
      return rule(cast<Op>(op), sharder);
    };
  }

  llvm::StringMap<ShardRule> rules;
};
} // namespace

ShardRule mica::findShardRule(Operation *op) {
  static const RuleTable table;
  return table.find(op);
}
