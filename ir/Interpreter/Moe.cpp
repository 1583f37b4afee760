//===- Moe.cpp - mixtures of experts --------------------------------------===//

#include "ir/Interpreter/Moe.h"
#include "ir/Interpreter/Blocks.h"
#include "ir/Interpreter/Formulas.h"
#include "ir/Interpreter/OpTable.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mica::interp {

/// x W^T + b, one logit per expert. Rounded to f32 as in kernels, because scores that are equal in
/// f32 are ties.
static SmallVector<float> productsOf(ArrayRef<float> x, const Tensor &gate, const Tensor *bias) {
  SmallVector<float> products;
  for (int64_t e = 0; e < gate.shape[0]; ++e)
    products.push_back(static_cast<float>(dot(x, gate.row(e)) + (bias ? bias->floats[e] : 0)));
  return products;
}

/// softmax or sigmoid of the logits, one score per expert.
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

/// The indices of the k largest scores in descending order; ties are resolved in favor of the lower
/// index.
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

/// The scores by which experts are selected: with the correction bias added, and the lowest float
/// for experts outside of the selected groups.
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

/// The weights of the selected experts. `scales` may be null.
static SmallVector<float> weightsOf(MoeGateOp op, ArrayRef<float> scores, ArrayRef<int64_t> experts,
                                    const Tensor *scales) {
  double total = op.getEps().convertToDouble();
  for (int64_t expert : experts)
    total += scores[expert];
  return llvm::map_to_vector(experts, [&](int64_t expert) {
    double weight = op.getNormalize() ? scores[expert] / total : scores[expert];
    return static_cast<float>(scales ? weight * scales->floats[expert] : weight);
  });
}

static llvm::Expected<SmallVector<Value>> evalMoeGate(MoeGateOp op, Scope &scope) {
  const Tensor &x = scope.tensor(op.getX()), &gate = scope.tensor(op.getGate());
  const Tensor *bias = op.getBias() ? &scope.tensor(op.getBias()) : nullptr;
  const Tensor *correctionBias =
      op.getEScoreCorrectionBias() ? &scope.tensor(op.getEScoreCorrectionBias()) : nullptr;
  const Tensor *scales = op.getExpertScales() ? &scope.tensor(op.getExpertScales()) : nullptr;
  int64_t k = op.getK(), rows = x.shape[0];
  Tensor weights = Tensor::zerosOf(op.getWeights().getType(), rows);
  Tensor experts = Tensor::zerosOf(op.getExperts().getType(), rows);
  for (int64_t t = 0; t < rows; ++t) {
    SmallVector<float> scores = scoresOf(productsOf(x.row(t), gate, bias), op.getScoring());
    SmallVector<int64_t> best = bestOf(choicesOf(op, scores, correctionBias), k);
    llvm::copy(weightsOf(op, scores, best, scales), weights.floats.begin() + t * k);
    llvm::copy(best, experts.ints.begin() + t * k);
  }
  return SmallVector<Value>{Value(std::move(weights)), Value(std::move(experts))};
}

/// The sum of the magnitudes of the terms of a logit, maximum over all experts.
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
  return weightsOf(op, scoresOf(products, op.getScoring()), experts,
                   tensorOf(op.getExpertScales()));
}

/// activation(gate) * up, or with `clamped` the formula of mica.moe_experts.
template <typename Op> static double gated(Op op, double gate, double up) {
  if (!op.getLimit())
    return activate(op.getActivation(), gate) * up;
  double limit = op.getLimit()->convertToDouble(), alpha = op.getAlpha()->convertToDouble();
  gate = std::min(gate, limit);
  return gate / (1 + std::exp(-alpha * gate)) * (std::clamp(up, -limit, limit) + 1);
}

/// Element `index` of the bias of expert e; 0 if there is no bias.
static double biasOf(const Scope &scope, mlir::Value bias, int64_t e, int64_t index) {
  return bias ? scope.tensor(bias).row(e)[index] : 0;
}

/// The inner activations of expert e for a row of x. Without `up`, the rows of gate and up
/// alternate in `gate`.
template <typename Op>
static SmallVector<double> activationsOf(Op op, const Scope &scope, ArrayRef<float> x, int64_t e,
                                         const Tensor &gate, const Tensor *up, int64_t inner) {
  int64_t width = gate.shape[2];
  ArrayRef<float> gateRows = gate.row(e), upRows = up ? up->row(e) : gateRows;
  SmallVector<double> activations;
  for (int64_t i = 0; i < inner; ++i) {
    int64_t gateRow = up ? i : gateIndex(i), upRow = up ? i : upIndex(i);
    double g =
        dot(x, gateRows.slice(gateRow * width, width)) + biasOf(scope, op.getGateBias(), e, i);
    double u = dot(x, upRows.slice(upRow * width, width)) + biasOf(scope, op.getUpBias(), e, i);
    activations.push_back(gated(op, g, u));
  }
  return activations;
}

/// y[t] = sum_j weights[t, j] * (down_e h(t, j, e) + bias[e]) + residual[t], e = experts[t, j],
/// where h are the inner activations, rounded.
template <typename Op>
static llvm::Expected<Tensor>
sumExperts(Op op, const Scope &scope, const Tensor &down, mlir::Value bias,
           llvm::function_ref<SmallVector<float>(int64_t t, int64_t j, int64_t e)> h) {
  const Tensor &weights = scope.tensor(op.getWeights()), &experts = scope.tensor(op.getExperts());
  const Tensor *residual = op.getResidual() ? &scope.tensor(op.getResidual()) : nullptr;
  int64_t rows = experts.shape[0], k = experts.shape[1], columns = down.shape[1],
          inner = down.shape[2];
  Tensor y = Tensor::zerosOf(op.getType(), rows);
  for (int64_t t = 0; t < rows; ++t) {
    SmallVector<double> sums(columns, 0.0);
    for (int64_t j = 0; j < k; ++j) {
      int64_t e = experts.ints[t * k + j];
      if (llvm::Error error = checkIndex(op, "expert", e, down.shape[0]))
        return error;
      SmallVector<float> activations = h(t, j, e);
      for (int64_t n = 0; n < columns; ++n)
        sums[n] +=
            weights.floats[t * k + j] *
            (dot(activations, down.row(e).slice(n * inner, inner)) + biasOf(scope, bias, e, n));
    }
    for (int64_t n = 0; n < columns; ++n)
      y.set(t * columns + n, sums[n] + (residual ? residual->floats[t * columns + n] : 0));
  }
  return y;
}

/// Fails unless the operands with a row per token have the same number of rows.
template <typename Op> static llvm::Error checkRowsOfTokens(Op op, const Scope &scope) {
  SmallVector<mlir::Value> rowOperands{op.getX(), op.getWeights(), op.getExperts()};
  if (op.getResidual())
    rowOperands.push_back(op.getResidual());
  return checkSameRows(op, scope, rowOperands);
}

// y[t] = sum_j weights[t, j] * down_e(gated(gate_e x[t], up_e x[t])) + residual[t], e = experts[t,
// j].
static llvm::Expected<Tensor> evalMoeExperts(MoeExpertsOp op, Scope &scope) {
  if (llvm::Error error = checkRowsOfTokens(op, scope))
    return error;
  const Tensor &x = scope.tensor(op.getX());
  Tensor roundedGate, roundedUp, roundedDown;
  auto multiplied = [&](mlir::Value weight, Tensor &rounded) -> const Tensor & {
    return asMultiplied(scope.tensor(weight), x.elementType, rounded);
  };
  const Tensor &gate = multiplied(op.getGate(), roundedGate),
               &down = multiplied(op.getDown(), roundedDown),
               *up = op.getUp() ? &multiplied(op.getUp(), roundedUp) : nullptr;
  // The inner activations have the type of x.
  return sumExperts(op, scope, down, op.getDownBias(), [&](int64_t t, int64_t, int64_t e) {
    SmallVector<float> h =
        llvm::map_to_vector(activationsOf(op, scope, x.row(t), e, gate, up, op.getInner()),
                            [&](double activation) { return roundTo(x.elementType, activation); });
    roundRow(x.elementType, h);
    return h;
  });
}

// y[t, j] = gated(gate_e x[t], up_e x[t]), e = experts[t, j].
static llvm::Expected<Tensor> evalMoeGateUp(MoeGateUpOp op, Scope &scope) {
  if (llvm::Error error = checkSameRows(op, scope, {op.getX(), op.getExperts()}))
    return error;
  const Tensor &x = scope.tensor(op.getX()), &experts = scope.tensor(op.getExperts());
  Tensor roundedGate, roundedUp;
  const Tensor &gate = asMultiplied(scope.tensor(op.getGate()), x.elementType, roundedGate),
               *up = op.getUp() ? &asMultiplied(scope.tensor(op.getUp()), x.elementType, roundedUp)
                                : nullptr;
  int64_t inner = op.getType().getDimSize(2), k = experts.shape[1];
  Tensor y = Tensor::zerosOf(op.getType(), x.shape[0]);
  for (auto [row, e] : llvm::enumerate(experts.ints)) {
    if (llvm::Error error = checkIndex(op, "expert", e, gate.shape[0]))
      return error;
    auto activations = activationsOf(op, scope, x.row(row / k), e, gate, up, inner);
    for (auto [i, activation] : llvm::enumerate(activations))
      y.set(row * inner + i, activation);
  }
  return y;
}

// y[t] = sum_j weights[t, j] * (down_e x[t, j] + bias[e]) + residual[t], e = experts[t, j].
static llvm::Expected<Tensor> evalMoeDown(MoeDownOp op, Scope &scope) {
  if (llvm::Error error = checkRowsOfTokens(op, scope))
    return error;
  const Tensor &x = scope.tensor(op.getX());
  Tensor rounded;
  const Tensor &down = asMultiplied(scope.tensor(op.getDown()), x.elementType, rounded);
  int64_t inner = down.shape[2];
  return sumExperts(op, scope, down, op.getBias(), [&](int64_t t, int64_t j, int64_t) {
    return SmallVector<float>(x.row(t).slice(j * inner, inner));
  });
}

void addMoeOps(OpTable &table) {
  table.add(evalMoeGate);
  table.add(evalMoeGateUp);
  table.add(evalMoeDown);
  table.add(evalMoeExperts);
}

} // namespace mica::interp
