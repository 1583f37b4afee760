//===- Moe.cpp - mixtures of experts --------------------------------------===//

#include "ir/Interpreter/Moe.h"
#include "ir/Interpreter/Blocks.h"
#include "ir/Interpreter/Formulas.h"
#include "ir/Interpreter/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mica::interp {

/// x W^T + b, one product per expert. Rounded to f32 where the kernels round, because scores that
/// are equal in f32 are ties.
static SmallVector<float> productsOf(ArrayRef<float> x, const Tensor &gate, const Tensor *bias) {
  SmallVector<float> products;
  for (int64_t e = 0; e < gate.shape[0]; ++e)
    products.push_back(static_cast<float>(dot(x, gate.row(e)) + (bias ? bias->floats[e] : 0)));
  return products;
}

/// softmax or sigmoid of the products, one score per expert.
static SmallVector<float> scoresOf(SmallVector<float> scores, Scoring scoring) {
  if (scoring == Scoring::Sigmoid) {
    for (float &score : scores)
      score = static_cast<float>(1 / (1 + std::exp(-double(score))));
    return scores;
  }
  double maximum = *llvm::max_element(scores), total = 0;
  for (float score : scores)
    total += std::exp(score - maximum);
  for (float &score : scores)
    score = static_cast<float>(std::exp(score - maximum) / total);
  return scores;
}

/// The indices of the k largest scores, best first; of equal ones the lower index.
static SmallVector<int64_t> bestOf(ArrayRef<float> scores, int64_t k) {
  SmallVector<int64_t> chosen;
  for (int64_t j = 0; j < k; ++j) {
    std::optional<int64_t> best;
    for (int64_t e = 0; e < static_cast<int64_t>(scores.size()); ++e)
      if (!llvm::is_contained(chosen, e) && (!best || scores[e] > scores[*best]))
        best = e;
    chosen.push_back(*best);
  }
  return chosen;
}

/// What experts are chosen by: scores with the correctionBias bias, those outside of the kept
/// groups far below all others.
static SmallVector<float> choicesOf(MoeGateOp op, ArrayRef<float> scores,
                                    const Tensor *correctionBias) {
  SmallVector<float> choices(scores);
  if (correctionBias)
    for (auto [choice, offset] : llvm::zip_equal(choices, correctionBias->floats))
      choice += offset;
  if (!op.getGroups())
    return choices;
  int64_t groups = *op.getGroups(), size = static_cast<int64_t>(choices.size()) / groups;
  SmallVector<float> groupScores;
  for (int64_t g = 0; g < groups; ++g) {
    auto members = ArrayRef(choices).slice(g * size, size);
    SmallVector<int64_t> best = bestOf(members, op.getGroupScoring() == GroupScoring::Best ? 1 : 2);
    float score = 0;
    for (int64_t member : best)
      score += members[member];
    groupScores.push_back(score);
  }
  SmallVector<int64_t> kept = bestOf(groupScores, *op.getTopkGroup());
  for (auto [e, choice] : llvm::enumerate(choices))
    if (!llvm::is_contained(kept, static_cast<int64_t>(e) / size))
      choice = std::numeric_limits<float>::lowest();
  return choices;
}

/// What the experts count.
static SmallVector<float> weightsOf(MoeGateOp op, ArrayRef<float> scores,
                                    ArrayRef<int64_t> experts) {
  double total = 1e-20;
  for (int64_t expert : experts)
    total += scores[expert];
  return llvm::map_to_vector(experts, [&](int64_t expert) {
    return static_cast<float>(op.getNormalize() ? scores[expert] / total : scores[expert]);
  });
}

static llvm::Expected<SmallVector<Value>> evalMoeGate(MoeGateOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX()), &gate = scope.tensor(op.getGate());
  const Tensor *bias = op.getBias() ? &scope.tensor(op.getBias()) : nullptr;
  const Tensor *correctionBias =
      op.getEScoreCorrectionBias() ? &scope.tensor(op.getEScoreCorrectionBias()) : nullptr;
  int64_t k = op.getK(), rows = x.shape[0];
  Tensor weights = Tensor::zerosOf(op.getWeights().getType(), rows);
  Tensor experts = Tensor::zerosOf(op.getExperts().getType(), rows);
  for (int64_t t = 0; t < rows; ++t) {
    SmallVector<float> scores = scoresOf(productsOf(x.row(t), gate, bias), op.getScoring());
    SmallVector<int64_t> best = bestOf(choicesOf(op, scores, correctionBias), k);
    llvm::copy(weightsOf(op, scores, best), weights.floats.begin() + t * k);
    llvm::copy(best, experts.ints.begin() + t * k);
  }
  return SmallVector<Value>{Value(std::move(weights)), Value(std::move(experts))};
}

/// The sum of the magnitudes of a product's terms, the largest of all experts.
static double reachOf(ArrayRef<float> x, const Tensor &gate, const Tensor *bias) {
  double reach = 0;
  for (int64_t e = 0; e < gate.shape[0]; ++e) {
    double sum = bias ? std::abs(bias->floats[e]) : 0;
    for (auto [a, b] : llvm::zip_equal(x, gate.row(e)))
      sum += std::abs(double(a) * b);
    reach = std::max(reach, sum);
  }
  return reach;
}

std::optional<SmallVector<float>> weightsIfNearTie(MoeGateOp op, ArrayRef<Value> operands,
                                                   int64_t row, ArrayRef<int64_t> experts,
                                                   double slack) {
  auto tensorOf = [&](mlir::Value operand) -> const Tensor * {
    for (auto [name, value] : llvm::zip_equal(op->getOperands(), operands))
      if (name == operand)
        return value.getTensor();
    return nullptr;
  };
  const Tensor &gate = *tensorOf(op.getGate());
  const Tensor *bias = tensorOf(op.getBias());
  ArrayRef<float> x = tensorOf(op.getX())->row(row);
  auto favor = [&](SmallVector<float> numbers, double amount) {
    for (auto [e, number] : llvm::enumerate(numbers))
      number += static_cast<float>(llvm::is_contained(experts, static_cast<int64_t>(e)) ? amount
                                                                                        : -amount);
    return numbers;
  };
  SmallVector<float> products = productsOf(x, gate, bias),
                     favored =
                         scoresOf(favor(products, slack * reachOf(x, gate, bias)), op.getScoring());
  favored = favor(favored, slack * *llvm::max_element(favored));
  SmallVector<int64_t> best =
      bestOf(choicesOf(op, favored, tensorOf(op.getEScoreCorrectionBias())), op.getK());
  SmallVector<int64_t> chosen(experts);
  llvm::sort(best);
  llvm::sort(chosen);
  if (best != chosen)
    return std::nullopt;
  return weightsOf(op, scoresOf(products, op.getScoring()), experts);
}

/// activation(gate) * up, or what is made of them between limits.
static double gated(MoeExpertsOp op, double gate, double up) {
  if (!op.getLimit())
    return activate(op.getActivation(), gate) * up;
  double limit = op.getLimit()->convertToDouble(), alpha = op.getAlpha()->convertToDouble();
  gate = std::min(gate, limit);
  return gate / (1 + std::exp(-alpha * gate)) * (std::clamp(up, -limit, limit) + 1);
}

/// Element `index` of the bias of expert e; 0 without one.
static double biasOf(const Scope &scope, mlir::Value bias, int64_t e, int64_t index) {
  return bias ? scope.tensor(bias).row(e)[index] : 0;
}

/// The inner activations of expert e, rounded to the type of x.
static SmallVector<float> innerOf(MoeExpertsOp op, const Scope &scope, ArrayRef<float> x, int64_t e,
                                  const Tensor &gate, const Tensor *up) {
  int64_t width = gate.shape[2];
  ArrayRef<float> gateRows = gate.row(e), upRows = up ? up->row(e) : gateRows;
  mlir::Type type = op.getX().getType().getElementType();
  SmallVector<float> inner;
  for (int64_t i = 0; i < static_cast<int64_t>(op.getInner()); ++i) {
    int64_t gateRow = op.getUp() ? i : gateIndex(i), upRow = op.getUp() ? i : upIndex(i);
    double g =
        dot(x, gateRows.slice(gateRow * width, width)) + biasOf(scope, op.getGateBias(), e, i);
    double u = dot(x, upRows.slice(upRow * width, width)) + biasOf(scope, op.getUpBias(), e, i);
    inner.push_back(roundTo(type, gated(op, g, u)));
  }
  roundRow(type, inner);
  return inner;
}

// y[t] = sum_j weights[t, j] * down_e(gated(gate_e x[t], up_e x[t])) + residual[t], e = experts[t,
// j].
static llvm::Expected<Tensor> evalMoeExperts(MoeExpertsOp op, Scope &scope) {
  SmallVector<mlir::Value> rowOperands{op.getX(), op.getWeights(), op.getExperts()};
  if (op.getResidual())
    rowOperands.push_back(op.getResidual());
  if (llvm::Error error = checkSameRows(op, scope, rowOperands))
    return error;
  const Tensor &x = scope.tensor(op.getX());
  Tensor roundedGate, roundedUp, roundedDown;
  auto multiplied = [&](mlir::Value weight, Tensor &rounded) -> const Tensor & {
    return asMultiplied(scope.tensor(weight), x.elementType, rounded);
  };
  const Tensor &gate = multiplied(op.getGate(), roundedGate),
               &down = multiplied(op.getDown(), roundedDown),
               *up = op.getUp() ? &multiplied(op.getUp(), roundedUp) : nullptr;
  const Tensor &weights = scope.tensor(op.getWeights()), &experts = scope.tensor(op.getExperts());
  const Tensor *residual = op.getResidual() ? &scope.tensor(op.getResidual()) : nullptr;
  int64_t inner = op.getInner(), columns = down.shape[1], k = experts.shape[1];
  Tensor y = Tensor::zerosOf(op.getType(), x.shape[0]);
  for (int64_t t = 0; t < x.shape[0]; ++t) {
    SmallVector<double> sums(columns, 0.0);
    for (int64_t j = 0; j < k; ++j) {
      int64_t e = experts.ints[t * k + j];
      if (llvm::Error error = checkIndex(op, "expert", e, down.shape[0]))
        return error;
      SmallVector<float> h = innerOf(op, scope, x.row(t), e, gate, up);
      for (int64_t n = 0; n < columns; ++n)
        sums[n] += weights.floats[t * k + j] * (dot(h, down.row(e).slice(n * inner, inner)) +
                                                biasOf(scope, op.getDownBias(), e, n));
    }
    for (int64_t n = 0; n < columns; ++n)
      y.set(t * columns + n, sums[n] + (residual ? residual->floats[t * columns + n] : 0));
  }
  return y;
}

void addMoeOps(OpTable &table) {
  table.add(evalMoeGate);
  table.add(evalMoeExperts);
}

} // namespace mica::interp
