//===- Norm.cpp - normalization -------------------------------------------===//

#include "ir/Interpreter/Formulas.h"
#include "ir/Interpreter/OpTable.h"

#include <cmath>

using namespace mlir;

namespace mica::interp {

/// Calls `normalize(row of x, first index of that row)` for every vector along the last axis.
template <typename Function> static void forEachVector(const Tensor &x, Function normalize) {
  int64_t width = x.shape.back();
  for (int64_t begin = 0; begin < x.getNumElements(); begin += width)
    normalize(ArrayRef(x.floats).slice(begin, width), begin);
}

/// The weight of the vector of `width` elements at `begin`: that of its head, or the one shared by
/// all.
static ArrayRef<float> weightAt(const Tensor &w, int64_t begin, int64_t width) {
  return ArrayRef(w.floats).slice(begin % w.getNumElements(), width);
}

// y = (weight_offset + w) * (x * rsqrt(mean(x^2) + eps)).
static llvm::Expected<Tensor> evalRmsNorm(RmsNormOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX()), &w = scope.tensor(op.getWeight());
  double eps = op.getEps().convertToDouble(), offset = op.getWeightOffset().convertToDouble();
  bool roundsFirst = op.getRounding() == NormRounding::BeforeWeight;
  auto round = [&](double value) { return double(roundTo(x.elementType, value)); };
  Tensor y = Tensor::zeros(op.getType().getElementType(), x.shape);
  forEachVector(x, [&](ArrayRef<float> row, int64_t begin) {
    ArrayRef<float> weight = weightAt(w, begin, row.size());
    double scale = inverseRms(row, eps);
    for (auto [i, value] : llvm::enumerate(row)) {
      double normalized = roundsFirst ? round(value * scale) : value * scale;
      y.set(begin + i, round((offset + weight[i]) * normalized));
    }
  });
  return y;
}

// y = w * (x - mean(x)) * rsqrt(variance(x) + eps) + b.
static llvm::Expected<Tensor> evalLayerNorm(LayerNormOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX()), &w = scope.tensor(op.getWeight());
  const Tensor *bias = op.getBias() ? &scope.tensor(op.getBias()) : nullptr;
  double eps = op.getEps().convertToDouble();
  Tensor y = Tensor::zeros(op.getType().getElementType(), x.shape);
  forEachVector(x, [&](ArrayRef<float> row, int64_t begin) {
    ArrayRef<float> weight = weightAt(w, begin, row.size());
    double mean = 0, variance = 0;
    for (double value : row)
      mean += value / row.size();
    for (double value : row)
      variance += (value - mean) * (value - mean) / row.size();
    double scale = 1 / std::sqrt(variance + eps);
    for (auto [i, value] : llvm::enumerate(row))
      y.set(begin + i, weight[i] * (value - mean) * scale +
                           (bias ? weightAt(*bias, begin, row.size())[i] : 0));
  });
  return y;
}

// y = x * rsqrt(sum(x^2) + eps).
static llvm::Expected<Tensor> evalL2Norm(L2NormOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX());
  double eps = op.getEps().convertToDouble();
  Tensor y = Tensor::zeros(x.elementType, x.shape);
  forEachVector(x, [&](ArrayRef<float> row, int64_t begin) {
    double sum = 0;
    for (double value : row)
      sum += value * value;
    for (auto [i, value] : llvm::enumerate(row))
      y.set(begin + i, value / std::sqrt(sum + eps));
  });
  return y;
}

void addNormOps(OpTable &table) {
  table.add(evalRmsNorm);
  table.add(evalLayerNorm);
  table.add(evalL2Norm);
}

} // namespace mica::interp
