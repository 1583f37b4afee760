//===- MoePatterns.cpp - gates and experts --------------------------------===//

#include "backends/cpu/kernels/matmul/Products.h"
#include "backends/cpu/kernels/moe/Moe.h"
#include "backends/cpu/kernels/rows/Rows.h"
#include "backends/cpu/lowering/Lowering.h"
#include "passes/support/Weights.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

// moe_gate(x, gate) => launches of kernels that compute the scores, and select the experts of each
// row and their weights
struct LowerMoeGate : Lowering<MoeGateOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeGateOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    auto gate = cast<RankedTensorType>(op.getGate().getType());
    if (!isPacked(op.getGate()))
      return op.emitOpError("has a gate without a packed layout");
    if (failed(checkProduct(op, op.getX(), op.getGate())))
      return failure();
    GateSpec spec{op.getScoring(),
                  gate.getDimSize(0),
                  static_cast<int64_t>(op.getK()),
                  op.getNormalize() ? std::optional(op.getEps().convertToDouble()) : std::nullopt,
                  !!op.getEScoreCorrectionBias(),
                  !!op.getExpertScales()};
    if (op.getGroups()) {
      spec.groups = static_cast<int64_t>(*op.getGroups());
      spec.topkGroup = static_cast<int64_t>(*op.getTopkGroup());
      spec.groupScoring = *op.getGroupScoring();
    }
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value rows = launch.rowsOf(operands.getX());
    ProductSpec product{weightSpecOf(op.getGate()), /*bias=*/!!op.getBias(), /*accumulate=*/false};
    SmallVector<Value> factors{operands.getX(), operands.getGate()};
    if (op.getBias())
      factors.push_back(operands.getBias());
    auto logitsType =
        RankedTensorType::get({ShapedType::kDynamic, spec.experts}, rewriter.getF32Type());
    Value logits =
        launch(productName("linear", spec.experts, product.weight.k),
               launch.parameters(product.weight.element, spec.experts, product.weight.k,
                                 product.bias, false),
               launch.constant(blocksOf(spec.experts)), factors, launch.empty(logitsType, rows),
               [&](KernelBuilder &b, ValueRange args) { emitProduct(b, args, product); },
               {.weightBytes = sizeInBytes(operands.getGate()),
                .rowFlops = 2 * spec.experts * product.weight.k})[0];
    SmallVector<Value> inputs{logits};
    if (op.getEScoreCorrectionBias())
      inputs.push_back(operands.getEScoreCorrectionBias());
    if (op.getExpertScales())
      inputs.push_back(operands.getExpertScales());
    ArrayAttr key = launch.parameters(stringifyScoring(spec.scoring), op.getNormalize(),
                                      op.getEpsAttr(), spec.expertScales, spec.groups,
                                      spec.topkGroup, stringifyGroupScoring(spec.groupScoring));
    rewriter.replaceOp(op,
                       launch("moe_gate", key, rows, inputs,
                              {launch.empty(op.getWeights().getType(), rows),
                               launch.empty(op.getExperts().getType(), rows)},
                              [&](KernelBuilder &b, ValueRange args) { emitGate(b, args, spec); }));
    return success();
  }
};

/// The matrices of experts: in the op, with its layout, and as the operand of kernels; and the
/// biases, which may be null.
struct ExpertMatrices {
  Value matrix, packed, bias;
};

/// The launches that multiply rows by the experts' matrices.
class ExpertProducts {
public:
  /// `x`: the rows in the op. `choice`: the experts of each row, an operand of kernels, of
  /// `experts` in all.
  ExpertProducts(Launcher &launch, Value x, Value choice, int64_t experts)
      : launch(launch), x(x), rows(launch.rowsOf(choice)), experts(experts),
        choices(cast<RankedTensorType>(choice.getType()).getDimSize(1)) {
    auto starts = RankedTensorType::get({experts + 1}, launch.rewriter.getI32Type());
    routes =
        launch("moe_route", launch.parameters(experts), launch.constant(1), choice,
               {launch.empty(choice.getType(), rows), launch.empty(starts, {})},
               [&](KernelBuilder &b, ValueRange args) { emitRoute(b, args, experts, choices); });
  }

  /// The products of `rows`, of the type of x, with a matrix for each choice.
  Value product(StringRef base, Value rows, ExpertMatrices weights) {
    WeightSpec weight = weightSpecOf(weights.matrix, x);
    return multiply(
        productName(base, weight.n, weight.k),
        launch.parameters(weight.element, weight.n, weight.k, !!weights.bias), rows, weights.packed,
        {}, weights.bias, perChoice(weight.n, launch.rewriter.getF32Type()),
        2 * weight.n * weight.k,
        [&](KernelBuilder &b, ValueRange args) { emitExpertsProduct(b, args, weight); });
  }

  /// The inner activations of `rows`, rounded to `element`. Without `up`, gate and up are in one
  /// weight.
  Value innerActivations(Value rows, ExpertMatrices gate, ExpertMatrices up, int64_t inner,
                         const Gating &gating, Type element) {
    return up.matrix ? upAfterGate(rows, gate, up, inner, gating, element)
                     : gateAndUp(rows, gate, up.bias, inner, gating, element);
  }

  /// `h`, f32 [T, k, inner], as integer rows of the type of x.
  Value quantized(Value h, int64_t inner) {
    int64_t bits = integerRowBits(getElementTypeOrSelf(x));
    return launch("quantize", launch.parameters(inner, bits), rows, h,
                  perChoice(inner, getElementTypeOrSelf(x)),
                  [&](KernelBuilder &b, ValueRange args) { emitQuantize(b, args, bits); })[0];
  }

  /// The weighted sum of the products, added to the residual if there is one.
  Value combine(Value parts, Value weights, Value residual, Type type) {
    bool accumulate = !!residual;
    Value target = accumulate ? residual : launch.empty(type, rows);
    return launch("experts_combine", launch.parameters(accumulate), rows, {parts, weights}, target,
                  [&](KernelBuilder &b, ValueRange args) { emitCombine(b, args, accumulate); })[0];
  }

private:
  /// innerActivations with gate and up in one weight.
  Value gateAndUp(Value rows, ExpertMatrices gate, Value upBias, int64_t inner,
                  const Gating &gating, Type element) {
    WeightSpec weight = weightSpecOf(gate.matrix, x);
    return multiply(
        productName("experts_up", inner, weight.k), gatedParameters(weight, inner, gating, upBias),
        rows, gate.packed, {}, {gate.bias, upBias}, perChoice(inner, element), 4 * inner * weight.k,
        [&](KernelBuilder &b, ValueRange args) { emitExpertsUp(b, args, weight, inner, gating); });
  }

  /// innerActivations with gate and up in two weights.
  Value upAfterGate(Value rows, ExpertMatrices gate, ExpertMatrices up, int64_t inner,
                    const Gating &gating, Type element) {
    Value gates = product("experts_gate", rows, gate);
    WeightSpec weight = weightSpecOf(up.matrix, x);
    return multiply(
        productName("experts_up_apart", inner, weight.k),
        gatedParameters(weight, inner, gating, up.bias), rows, up.packed, gates, up.bias,
        perChoice(inner, element), 2 * inner * weight.k,
        [&](KernelBuilder &b, ValueRange args) { emitExpertsUpApart(b, args, weight, gating); });
  }

  /// Launches a kernel that multiplies `from` by the matrices of the experts in `packed`; each row
  /// takes `flops` per choice. `gates` and `biases` may be empty or null.
  Value multiply(StringRef name, ArrayAttr parameters, Value from, Value packed, ValueRange gates,
                 ArrayRef<Value> biases, Value result, int64_t flops, KernelLibrary::Build build) {
    SmallVector<Value> factors{from, routes[0], routes[1], packed};
    llvm::append_range(factors, gates);
    llvm::append_range(factors, llvm::make_filter_range(biases, [](Value each) { return !!each; }));
    int64_t columns = cast<RankedTensorType>(result.getType()).getShape().back();
    return launch(name, parameters, launch.constant(experts * blocksOf(columns)), factors, result,
                  build,
                  {.expertBytes = sizeInBytes(packed) / experts,
                   .experts = experts,
                   .rowExperts = choices,
                   .rowFlops = choices * flops})[0];
  }

  ArrayAttr gatedParameters(const WeightSpec &weight, int64_t inner, const Gating &gating,
                            Value upBias) {
    Gating::Clamp clamp = gating.clamp.value_or(Gating::Clamp{0, 0});
    return launch.parameters(weight.element, inner, weight.k,
                             stringifyActivation(gating.activation), !!upBias, clamp.alpha,
                             clamp.limit);
  }

  Value perChoice(int64_t columns, Type element) {
    auto type = RankedTensorType::get({ShapedType::kDynamic, choices, columns}, element);
    return launch.empty(type, rows);
  }

  Launcher &launch;
  Value x, rows;
  int64_t experts, choices;
  SmallVector<Value> routes; ///< the order of the pairs, and where each expert's start
};

/// The number of experts that have these matrices.
int64_t expertsOf(Value matrices) {
  return cast<RankedTensorType>(matrices.getType()).getDimSize(0);
}

/// Fails unless kernels can multiply the rows of `op` by all its matrices.
LogicalResult checkExperts(MultipliesRows op) {
  for (Value matrix : allMatricesOf(op)) {
    if (!isPacked(matrix))
      return op->emitOpError("has a matrix without a packed layout");
    if (failed(checkProduct(op, op.getMultipliedRows().get(), matrix)))
      return failure();
  }
  return success();
}

template <typename Op> Gating gatingOf(Op op) {
  Gating gating{op.getActivation()};
  if (op.getLimit())
    gating.clamp = {op.getAlpha()->convertToDouble(), op.getLimit()->convertToDouble()};
  return gating;
}

// moe_experts(x, experts, weights) => launches of kernels that sort the rows by their experts,
// multiply them by the experts' matrices, and add up the results
struct LowerMoeExperts : Lowering<MoeExpertsOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeExpertsOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (failed(checkExperts(op)))
      return failure();
    Launcher launch(rewriter, op.getLoc(), kernels);
    ExpertProducts products(launch, op.getX(), operands.getExperts(), expertsOf(op.getDown()));
    Value x = operands.getX();
    Type element = getElementTypeOrSelf(op.getX());
    // The inner rows are quantized after the kernel (canRound of FuseCasts.cpp says why).
    bool quantizes = integerRowBits(element) != 0;
    Type rounded = quantizes ? Type(rewriter.getF32Type()) : element;
    int64_t inner = op.getInner();
    Value h = products.innerActivations(
        x, {op.getGate(), operands.getGate(), operands.getGateBias()},
        {op.getUp(), operands.getUp(), operands.getUpBias()}, inner, gatingOf(op), rounded);
    if (quantizes)
      h = products.quantized(h, inner);
    Value parts = products.product("experts_down", h,
                                   {op.getDown(), operands.getDown(), operands.getDownBias()});
    rewriter.replaceOp(
        op, products.combine(parts, operands.getWeights(), operands.getResidual(), op.getType()));
    return success();
  }
};

// moe_gate_up(x, experts) => launches of the first kernels of moe_experts
struct LowerMoeGateUp : Lowering<MoeGateUpOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeGateUpOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (failed(checkExperts(op)))
      return failure();
    Launcher launch(rewriter, op.getLoc(), kernels);
    ExpertProducts products(launch, op.getX(), operands.getExperts(), expertsOf(op.getGate()));
    RankedTensorType type = op.getType();
    rewriter.replaceOp(
        op, products.innerActivations(operands.getX(),
                                      {op.getGate(), operands.getGate(), operands.getGateBias()},
                                      {op.getUp(), operands.getUp(), operands.getUpBias()},
                                      type.getDimSize(2), gatingOf(op), type.getElementType()));
    return success();
  }
};

// moe_down(x, experts, weights) => launches of the last kernels of moe_experts
struct LowerMoeDown : Lowering<MoeDownOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeDownOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (failed(checkExperts(op)))
      return failure();
    Launcher launch(rewriter, op.getLoc(), kernels);
    ExpertProducts products(launch, op.getX(), operands.getExperts(), expertsOf(op.getDown()));
    Value parts = products.product("experts_down", operands.getX(),
                                   {op.getDown(), operands.getDown(), operands.getBias()});
    rewriter.replaceOp(
        op, products.combine(parts, operands.getWeights(), operands.getResidual(), op.getType()));
    return success();
  }
};

} // namespace

void mica::cpu::populateMoePatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                    KernelLibrary &kernels) {
  patterns.add<LowerMoeGate, LowerMoeExperts, LowerMoeGateUp, LowerMoeDown>(
      converter, patterns.getContext(), kernels);
}
