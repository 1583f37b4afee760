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
    GateSpec spec{op.getScoring(), gate.getDimSize(0), static_cast<int64_t>(op.getK()),
                  op.getNormalize(), !!op.getEScoreCorrectionBias()};
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
    ArrayAttr key = launch.parameters(stringifyScoring(spec.scoring), spec.normalize, spec.groups,
                                      spec.topkGroup, stringifyGroupScoring(spec.groupScoring));
    rewriter.replaceOp(op,
                       launch("moe_gate", key, rows, inputs,
                              {launch.empty(op.getWeights().getType(), rows),
                               launch.empty(op.getExperts().getType(), rows)},
                              [&](KernelBuilder &b, ValueRange args) { emitGate(b, args, spec); }));
    return success();
  }
};

/// The launches that multiply rows by the experts' matrices.
class ExpertProducts {
public:
  ExpertProducts(Launcher &launch, MoeExpertsOp op, MoeExpertsOp::Adaptor operands)
      : launch(launch), op(op), operands(operands), rows(launch.rowsOf(operands.getX())),
        experts(cast<RankedTensorType>(op.getDown().getType()).getDimSize(0)), inner(op.getInner()),
        choices(cast<RankedTensorType>(op.getExperts().getType()).getDimSize(1)),
        xElement(cast<RankedTensorType>(op.getX().getType()).getElementType()),
        rowBits(integerRowBits(xElement)), gating{op.getActivation()} {
    if (op.getLimit())
      gating.clamp = {op.getAlpha()->convertToDouble(), op.getLimit()->convertToDouble()};
  }

  /// Sorts the pairs of rows and choices by their experts.
  void route() {
    auto picks = cast<RankedTensorType>(op.getExperts().getType());
    auto starts = RankedTensorType::get({experts + 1}, launch.rewriter.getI32Type());
    routes =
        launch("moe_route", launch.parameters(experts), launch.constant(1), operands.getExperts(),
               {launch.empty(picks, rows), launch.empty(starts, {})},
               [&](KernelBuilder &b, ValueRange args) { emitRoute(b, args, experts, choices); });
  }

  /// The inner activations, as rows of the type of x.
  Value innerRows() {
    Value h = op.getUp() ? upAfterGate() : gateAndUp();
    if (rowBits == 0)
      return h;
    return launch("quantize", launch.parameters(inner, rowBits), rows, h,
                  perChoice(inner, xElement),
                  [&](KernelBuilder &b, ValueRange args) { emitQuantize(b, args, rowBits); })[0];
  }

  /// The products of `x` with a matrix for each choice.
  Value product(StringRef base, Value x, Value matrix, Value packed, Value bias) {
    WeightSpec weight = weightSpecOf(matrix, op.getX());
    return multiply(
        productName(base, weight.n, weight.k),
        launch.parameters(weight.element, weight.n, weight.k, !!bias), x, packed, {}, bias,
        perChoice(weight.n, launch.rewriter.getF32Type()), 2 * weight.n * weight.k,
        [&](KernelBuilder &b, ValueRange args) { emitExpertsProduct(b, args, weight); });
  }

  /// The weighted sum of the products, added to the residual if there is one.
  Value combine(Value parts) {
    bool accumulate = !!op.getResidual();
    Value target = accumulate ? operands.getResidual() : launch.empty(op.getType(), rows);
    return launch("experts_combine", launch.parameters(accumulate), rows,
                  {parts, operands.getWeights()}, target,
                  [&](KernelBuilder &b, ValueRange args) { emitCombine(b, args, accumulate); })[0];
  }

private:
  /// Launches a kernel that multiplies `x` by the matrices of the experts in `packed`; each row
  /// takes `flops` per choice. `gates` and `biases` may be empty or null.
  Value multiply(StringRef name, ArrayAttr parameters, Value x, Value packed, ValueRange gates,
                 ArrayRef<Value> biases, Value result, int64_t flops, KernelLibrary::Build build) {
    SmallVector<Value> factors{x, routes[0], routes[1], packed};
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

  /// Of gate and up in one weight.
  Value gateAndUp() {
    WeightSpec weight = weightSpecOf(op.getGate(), op.getX());
    return multiply(
        productName("experts_up", inner, weight.k), gatedParameters(weight), operands.getX(),
        operands.getGate(), {}, {operands.getGateBias(), operands.getUpBias()},
        perChoice(inner, innerElement()), 4 * inner * weight.k,
        [&](KernelBuilder &b, ValueRange args) { emitExpertsUp(b, args, weight, inner, gating); });
  }

  /// Of gate and up that are stored differently.
  Value upAfterGate() {
    Value gates = product("experts_gate", operands.getX(), op.getGate(), operands.getGate(),
                          operands.getGateBias());
    WeightSpec weight = weightSpecOf(op.getUp(), op.getX());
    return multiply(
        productName("experts_up_apart", inner, weight.k), gatedParameters(weight), operands.getX(),
        operands.getUp(), gates, operands.getUpBias(), perChoice(inner, innerElement()),
        2 * inner * weight.k,
        [&](KernelBuilder &b, ValueRange args) { emitExpertsUpApart(b, args, weight, gating); });
  }

  ArrayAttr gatedParameters(const WeightSpec &weight) {
    Gating::Clamp clamp = gating.clamp.value_or(Gating::Clamp{0, 0});
    return launch.parameters(weight.element, inner, weight.k,
                             stringifyActivation(gating.activation), !!op.getUpBias(), clamp.alpha,
                             clamp.limit);
  }

  /// The inner rows are quantized after the kernel (canRound of FuseCasts.cpp says why).
  Type innerElement() { return rowBits != 0 ? Type(launch.rewriter.getF32Type()) : xElement; }

  Value perChoice(int64_t columns, Type element) {
    auto type = RankedTensorType::get({ShapedType::kDynamic, choices, columns}, element);
    return launch.empty(type, rows);
  }

  Launcher &launch;
  MoeExpertsOp op;
  MoeExpertsOp::Adaptor operands;
  Value rows;
  int64_t experts, inner, choices;
  Type xElement;
  int64_t rowBits;
  Gating gating;
  SmallVector<Value> routes; ///< the order of the pairs, and where each expert's start
};

// moe_experts(x, experts, weights) => launches of kernels that sort the rows by their experts,
// multiply them by the experts' matrices, and add up the results
struct LowerMoeExperts : Lowering<MoeExpertsOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeExpertsOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    for (Value matrix : allMatricesOf(op)) {
      if (!isPacked(matrix))
        return op.emitOpError("has a matrix without a packed layout");
      if (failed(checkProduct(op, op.getX(), matrix)))
        return failure();
    }
    Launcher launch(rewriter, op.getLoc(), kernels);
    ExpertProducts products(launch, op, operands);
    products.route();
    Value h = products.innerRows();
    Value parts = products.product("experts_down", h, op.getDown(), operands.getDown(),
                                   operands.getDownBias());
    rewriter.replaceOp(op, products.combine(parts));
    return success();
  }
};

} // namespace

void mica::cpu::populateMoePatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                    KernelLibrary &kernels) {
  patterns.add<LowerMoeGate, LowerMoeExperts>(converter, patterns.getContext(), kernels);
}
