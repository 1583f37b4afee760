//===- Shard.cpp - ops in which ranks communicate -------------------------===//

#include "ir/Interpreter/OpTable.h"

using namespace mlir;

namespace mica::interp {

/// `value` on each rank.
static RankValues onAllRanks(Value value, Frame &frame) {
  return RankValues(frame.ranks().size(), SmallVector<Value>{std::move(value)});
}

// y[..., r n + i] = x_r[..., i], n columns of each rank r.
static llvm::Expected<RankValues> evalAllGather(AllGatherOp op, Frame &frame) {
  const Tensor &first = frame.ranks().front().tensor(op.getX());
  int64_t part = first.shape.back(), columns = op.getType().getShape().back();
  SmallVector<int64_t> shape(first.shape);
  shape.back() = columns;
  Tensor y = Tensor::zeros(first.elementType, shape);
  for (Scope &scope : frame.ranks()) {
    const Tensor &x = scope.tensor(op.getX());
    int64_t begin = std::min(scope.rank * part, columns), count = std::min(part, columns - begin);
    for (int64_t row = 0; row < x.getNumElements() / part; ++row)
      std::copy_n(x.floats.begin() + row * part, count, y.floats.begin() + row * columns + begin);
  }
  return onAllRanks(std::move(y), frame);
}

// y[..., i] = x[..., r n + i], n columns of each rank r.
static llvm::Expected<Tensor> evalAllSlice(AllSliceOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX());
  return x.part(static_cast<int64_t>(x.shape.size()) - 1, scope.rank, op.getRanks());
}

// y[t] = table_r[tokens[t] - r n], n rows of each rank r = tokens[t] / n.
static llvm::Expected<RankValues> evalShardedEmbedding(ShardedEmbeddingOp op, Frame &frame) {
  const Tensor &tokens = frame.ranks().front().tensor(op.getTokens());
  int64_t part = op.getTable().getType().getDimSize(0);
  Tensor y = Tensor::zerosOf(op.getType(), tokens.shape);
  for (auto [t, token] : llvm::enumerate(tokens.ints)) {
    if (llvm::Error error = checkIndex(op, "token", token, op.getRows()))
      return std::move(error);
    llvm::copy(frame.ranks()[token / part].tensor(op.getTable()).row(token % part),
               y.floats.begin() + t * y.rowSize());
  }
  return onAllRanks(std::move(y), frame);
}

void addShardOps(OpTable &table) {
  table.add(evalAllGather);
  table.add(evalAllSlice);
  table.add(evalShardedEmbedding);
}

} // namespace mica::interp
