//===- MoePatterns.cpp - gates and experts --------------------------------===//

#include "backends/cpu/kernels/matmul/Products.h"
#include "backends/cpu/kernels/moe/Moe.h"
#include "backends/cpu/kernels/rows/Rows.h"
#include "backends/cpu/lowering/Lowering.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

// moe_gate(x, gate) => launches of kernels that compute the scores, and select and weigh the
// experts of each row
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

// moe_experts(x, experts, weights) => launches of kernels that sort the rows by their experts,
// multiply them by the experts' matrices, and add up the results
struct LowerMoeExperts : Lowering<MoeExpertsOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeExpertsOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (op.getUp() || !isPacked(op.getGate()) || !isPacked(op.getDown()))
      return op.emitOpError("is lowered with gate and up merged and packed");
    if (failed(checkProduct(op, op.getX(), op.getGate())) ||
        failed(checkProduct(op, op.getX(), op.getDown())))
      return failure();
    Launcher launch(rewriter, op.getLoc(), kernels);
    WeightSpec gate = weightSpecOf(op.getGate(), op.getX()),
               down = weightSpecOf(op.getDown(), op.getX());
    int64_t experts = cast<RankedTensorType>(op.getDown().getType()).getDimSize(0),
            inner = op.getInner();
    auto picks = cast<RankedTensorType>(op.getExperts().getType());
    int64_t choices = picks.getDimSize(1);
    Value rows = launch.rowsOf(operands.getX());
    auto starts = RankedTensorType::get({experts + 1}, rewriter.getI32Type());
    SmallVector<Value> routes =
        launch("moe_route", launch.parameters(experts), launch.constant(1), operands.getExperts(),
               {launch.empty(picks, rows), launch.empty(starts, {})},
               [&](KernelBuilder &b, ValueRange args) { emitRoute(b, args, experts, choices); });
    auto tasks = [&](int64_t n) { return launch.constant(experts * blocksOf(n)); };
    auto perChoice = [&](int64_t columns, Type element) {
      auto type = RankedTensorType::get({ShapedType::kDynamic, choices, columns}, element);
      return launch.empty(type, rows);
    };
    auto cost = [&](Value stack, int64_t flops) {
      return LaunchCost{.expertBytes = sizeInBytes(stack) / experts,
                        .experts = experts,
                        .rowExperts = choices,
                        .rowFlops = choices * flops};
    };
    // The inner rows are quantized after the kernel (canRound of FuseCasts.cpp says why).
    Type xElement = cast<RankedTensorType>(op.getX().getType()).getElementType();
    int64_t limbs = gate.limbs;
    Type innerElement = limbs != 0 ? Type(rewriter.getF32Type()) : xElement;
    bool biased = !!op.getGateBias();
    Gating gating{op.getActivation()};
    if (op.getLimit())
      gating.clamp = {op.getAlpha()->convertToDouble(), op.getLimit()->convertToDouble()};
    SmallVector<Value> upFactors{operands.getX(), routes[0], routes[1], operands.getGate()},
        downFactors{routes[0], routes[1], operands.getDown()};
    if (biased) {
      llvm::append_values(upFactors, operands.getGateBias(), operands.getUpBias());
      downFactors.push_back(operands.getDownBias());
    }
    Gating::Clamp clamp = gating.clamp.value_or(Gating::Clamp{0, 0});
    Value h = launch(
        productName("experts_up", inner, gate.k),
        launch.parameters(gate.element, inner, gate.k, stringifyActivation(gating.activation),
                          biased, clamp.alpha, clamp.limit),
        tasks(inner), upFactors, perChoice(inner, innerElement),
        [&](KernelBuilder &b, ValueRange args) { emitExpertsUp(b, args, gate, inner, gating); },
        cost(operands.getGate(), 4 * inner * gate.k))[0];
    if (limbs != 0)
      h = launch("quantize", launch.parameters(inner, limbs), rows, h, perChoice(inner, xElement),
                 [&](KernelBuilder &b, ValueRange args) { emitQuantize(b, args, limbs); })[0];
    downFactors.insert(downFactors.begin(), h);
    Value parts = launch(
        productName("experts_down", down.n, inner),
        launch.parameters(down.element, down.n, inner, biased), tasks(down.n), downFactors,
        perChoice(down.n, rewriter.getF32Type()),
        [&](KernelBuilder &b, ValueRange args) { emitExpertsDown(b, args, down); },
        cost(operands.getDown(), 2 * down.n * inner))[0];
    bool accumulate = !!op.getResidual();
    Value target = accumulate ? operands.getResidual() : launch.empty(op.getType(), rows);
    rewriter.replaceOp(
        op, launch("experts_combine", launch.parameters(accumulate), rows,
                   {parts, operands.getWeights()}, target,
                   [&](KernelBuilder &b, ValueRange args) { emitCombine(b, args, accumulate); }));
    return success();
  }
};

} // namespace

void mica::cpu::populateMoePatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                    KernelLibrary &kernels) {
  patterns.add<LowerMoeGate, LowerMoeExperts>(converter, patterns.getContext(), kernels);
}
