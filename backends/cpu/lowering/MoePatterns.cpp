//===- MoePatterns.cpp - gates and experts ---------------------------------------------===//

#include "backends/cpu/lowering/Lowering.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

struct LowerMoeGate : Lowering<MoeGateOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeGateOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    auto gate = cast<RankedTensorType>(op.getGate().getType());
    if (cast<RankedTensorType>(operands.getGate().getType()).getRank() != 4)
      return op.emitOpError("has a gate without a packed layout");
    GateSpec spec{op.getScoring(), gate.getDimSize(0), static_cast<int64_t>(op.getK()),
                  op.getNormalize()};
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value rows = launch.rowsOf(operands.getX());
    ProductSpec product{spec.experts, gate.getDimSize(1), /*bias=*/false, /*accumulate=*/false};
    auto logitsType =
        RankedTensorType::get({ShapedType::kDynamic, spec.experts}, rewriter.getF32Type());
    Value logits =
        launch(productName("linear", product.n, product.k), specOf(product.n, product.k, false),
               launch.constant(roundUp(product.n, kBlockColumns) / kBlockColumns),
               operands.getOperands(), launch.empty(logitsType, rows),
               [&](KernelBuilder &b, ValueRange args) { emitProduct(b, args, product); })[0];
    rewriter.replaceOp(
        op, launch("moe_gate", specOf(stringifyScoring(spec.scoring), spec.normalize), rows, logits,
                   {launch.empty(op.getWeights().getType(), rows),
                    launch.empty(op.getExperts().getType(), rows)},
                   [&](KernelBuilder &b, ValueRange args) { emitGate(b, args, spec); }));
    return success();
  }
};

struct LowerMoeExperts : Lowering<MoeExpertsOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MoeExpertsOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    auto down = cast<RankedTensorType>(op.getDown().getType());
    if (op.getUp() || cast<RankedTensorType>(operands.getGate().getType()).getRank() != 5)
      return op.emitOpError("is lowered with gate and up merged and packed");
    Launcher launch(rewriter, op.getLoc(), kernels);
    int64_t experts = down.getDimSize(0), columns = down.getDimSize(1), inner = op.getInner();
    auto picks = cast<RankedTensorType>(op.getExperts().getType());
    int64_t choices = picks.getDimSize(1),
            k = cast<RankedTensorType>(op.getX().getType()).getDimSize(1);
    Value rows = launch.rowsOf(operands.getX());
    auto starts = RankedTensorType::get({experts + 1}, rewriter.getI32Type());
    SmallVector<Value> routes =
        launch("moe_route", specOf(experts), launch.constant(1), operands.getExperts(),
               {launch.empty(picks, rows), launch.empty(starts, {})},
               [&](KernelBuilder &b, ValueRange args) { emitRoute(b, args, experts, choices); });
    auto tasks = [&](int64_t n) {
      return launch.constant(experts * (roundUp(n, kBlockColumns) / kBlockColumns));
    };
    Type inputType = cast<RankedTensorType>(op.getX().getType()).getElementType();
    auto hidden = RankedTensorType::get({ShapedType::kDynamic, choices, inner}, inputType);
    Value h = launch(productName("experts_up", inner, k),
                     specOf(inner, stringifyActivation(op.getActivation())), tasks(inner),
                     {operands.getX(), routes[0], routes[1], operands.getGate()},
                     launch.empty(hidden, rows), [&](KernelBuilder &b, ValueRange args) {
                       emitExpertsUp(b, args, inner, k, op.getActivation());
                     })[0];
    auto partType =
        RankedTensorType::get({ShapedType::kDynamic, choices, columns}, rewriter.getF32Type());
    Value parts = launch(
        productName("experts_down", columns, inner), specOf(columns), tasks(columns),
        {h, routes[0], routes[1], operands.getDown()}, launch.empty(partType, rows),
        [&](KernelBuilder &b, ValueRange args) { emitExpertsDown(b, args, columns, inner); })[0];
    bool accumulate = !!op.getResidual();
    Value target = accumulate ? operands.getResidual() : launch.empty(op.getType(), rows);
    rewriter.replaceOp(
        op,
        launch("experts_combine", specOf(accumulate), rows, {parts, operands.getWeights()}, target,
               [&](KernelBuilder &b, ValueRange args) { emitCombine(b, args, accumulate); }));
    return success();
  }
};

} // namespace

void mica::cpu::populateMoePatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                    KernelLibrary &kernels) {
  patterns.add<LowerMoeGate, LowerMoeExperts>(converter, patterns.getContext(), kernels);
}
