//===- Fused.cpp - ops created by fusion ----------------------------------===//

#include "ir/Interpreter/Blocks.h"
#include "ir/Interpreter/Caches.h"
#include "ir/Interpreter/RopeRows.h"

using namespace mlir;

namespace mica::interp {

// y[t, 0, i] = a cos(positions[t] * inv_freq[i]), y[t, 1, i] = a sin(...).
static llvm::Expected<Tensor> evalRopeTable(RopeTableOp op, Scope &scope) {
  if (op.getLengths())
    if (llvm::Error error = checkSameRows(op, scope, {op.getPositions(), op.getLengths()}))
      return error;
  Tensor y = Tensor::zerosOf(op.getType(), scope.tensor(op.getPositions()).shape);
  RopeRows rows(op, op.getRotaryDim(), scope);
  auto pairs = static_cast<int64_t>(op.getRotaryDim()) / 2;
  for (int64_t t = 0; t < y.shape[0]; ++t) {
    Angles angles = rows.at(t);
    for (int64_t i = 0; i < pairs; ++i) {
      y.set(t * y.rowSize() + i, angles.cosines[i]);
      y.set(t * y.rowSize() + pairs + i, angles.sines[i]);
    }
  }
  return y;
}

/// Row t of a rope_table.
static Angles anglesOf(const Tensor &table, int64_t t) {
  ArrayRef<float> row = table.row(t);
  size_t pairs = table.shape[2];
  return {SmallVector<double>(row.take_front(pairs)), SmallVector<double>(row.drop_front(pairs))};
}

namespace {
/// One row of qkv, [(H + 2 G) D], split into heads.
struct QkvRow {
  QkvAppendOp op;
  Scope &scope;
  ArrayRef<float> row;
  Angles angles;
  int64_t headDim;

  /// Heads [begin, begin + count), normalized if `norm` is not null, and rotated.
  SmallVector<double> rotated(int64_t begin, int64_t count, mlir::Value norm) {
    SmallVector<double> result;
    for (int64_t h = begin; h < begin + count; ++h) {
      ArrayRef<float> head = row.slice(h * headDim, headDim);
      double scale = norm ? inverseRms(head, op.getEps()->convertToDouble()) : 1;
      SmallVector<double> values;
      for (auto [i, value] : llvm::enumerate(head))
        values.push_back(
            norm ? (op.getWeightOffset().convertToDouble() + scope.tensor(norm).floats[i]) *
                       (value * scale)
                 : value);
      rotate(values, angles, op.getPairing());
      result.append(values);
    }
    return result;
  }

  /// Heads [begin, begin + count), unchanged.
  SmallVector<double> plain(int64_t begin, int64_t count) {
    return SmallVector<double>(row.slice(begin * headDim, count * headDim));
  }
};
} // namespace

static llvm::Expected<SmallVector<Value>> evalQkvAppend(QkvAppendOp op, Scope &scope) {
  SmallVector<mlir::Value> rowOperands{op.getQkv(), op.getTable(), op.getSequences(),
                                       op.getPositions()};
  llvm::append_range(rowOperands, op.getParts());
  if (llvm::Error error = checkSameRows(op, scope, rowOperands))
    return error;
  const CacheVersion &keys = scope.cache(op.getKCache()), &values = scope.cache(op.getVCache());
  Slots slots = slotsOf(op, scope);
  for (const CacheVersion *version : {&keys, &values})
    if (llvm::Error error = checkSlots(op, *version, slots))
      return error;
  CacheVersion keysNext = consume(keys), valuesNext = consume(values);
  const Tensor &table = scope.tensor(op.getTable());
  SmallVector<const Tensor *> products{&scope.tensor(op.getQkv())};
  for (mlir::Value part : op.getParts())
    products.push_back(&scope.tensor(part));
  int64_t rows = products.front()->shape[0], groups = op.getKCache().getType().getHeads(),
          headDim = op.getKCache().getType().getHeadDim();
  Tensor q = Tensor::zerosOf(op.getQ().getType(), rows);
  int64_t heads = q.shape[1];
  for (int64_t t = 0; t < rows; ++t) {
    SmallVector<float> columns;
    for (const Tensor *product : products)
      llvm::append_range(columns, product->row(t));
    QkvRow row{op, scope, columns, anglesOf(table, t), headDim};
    for (auto [i, value] : llvm::enumerate(row.rotated(0, heads, op.getQNorm())))
      q.set(t * q.rowSize() + i, value);
    write(*keysNext.cache, slots, t, row.rotated(heads, groups, op.getKNorm()));
    write(*valuesNext.cache, slots, t, row.plain(heads + groups, groups));
  }
  return SmallVector<Value>{Value(std::move(q)), Value(keysNext), Value(valuesNext)};
}

// y[t, i] = activation(x[t] G[i]) * (x[t] U[i]), G and U in alternating blocks of 64 rows.
static llvm::Expected<Tensor> evalGatedLinear(GatedLinearOp op, Scope &scope) {
  Tensor rounded;
  const Tensor &x = scope.tensor(op.getX()),
               &w = asMultiplied(scope.tensor(op.getWeight()), x.elementType, rounded);
  Tensor y = Tensor::zerosOf(op.getType(), x.shape[0]);
  int64_t columns = y.shape[1];
  for (int64_t t = 0; t < x.shape[0]; ++t)
    for (int64_t i = 0; i < columns; ++i) {
      double gate = dot(x.row(t), w.row(gateIndex(i))), up = dot(x.row(t), w.row(upIndex(i)));
      y.set(t * columns + i, activate(op.getActivation(), gate) * up);
    }
  return y;
}

void addFusedOps(OpTable &table) {
  table.add(evalRopeTable);
  table.add(evalQkvAppend);
  table.add(evalGatedLinear);
}

} // namespace mica::interp
