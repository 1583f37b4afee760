//===- RowPatterns.cpp - norms, elementwise ops and reshapes --------------===//

#include "backends/cpu/kernels/Activation.h"
#include "backends/cpu/kernels/attention/Positions.h"
#include "backends/cpu/kernels/rows/Rows.h"
#include "backends/cpu/lowering/Lowering.h"
#include "ir/Mica/Activations.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

// launch => rmsnorm(x, weight) => launch => launch of a kernel over rows
struct LowerRmsNorm : Lowering<RmsNormOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(RmsNormOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    RmsNormSpec spec{op.getEps().convertToDouble(), op.getWeightOffset().convertToDouble(),
                     op.getRounding() == NormRounding::BeforeWeight,
                     integerRowBits(op.getType().getElementType())};
    rewriter.replaceOp(
        op, launch.overRows("rmsnorm",
                            launch.parameters(spec.eps, spec.weightOffset, spec.roundBeforeWeight,
                                              spec.rowBits),
                            {operands.getX(), operands.getWeight()}, op.getType(),
                            [&](KernelBuilder &b, ValueRange args) { emitRmsNorm(b, args, spec); },
                            {.weightBytes = sizeInBytes(operands.getWeight())}));
    return success();
  }
};

// layernorm(x, weight, bias) => launch of a kernel over rows
struct LowerLayerNorm : Lowering<LayerNormOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(LayerNormOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    double eps = op.getEps().convertToDouble();
    bool bias = !!op.getBias();
    int64_t rowBits = integerRowBits(op.getType().getElementType());
    SmallVector<Value> inputs{operands.getX(), operands.getWeight()};
    if (bias)
      inputs.push_back(operands.getBias());
    rewriter.replaceOp(
        op,
        launch.overRows(
            "layernorm", launch.parameters(eps, bias, rowBits), inputs, op.getType(),
            [&](KernelBuilder &b, ValueRange args) { emitLayerNorm(b, args, eps, bias, rowBits); },
            {.weightBytes = sizeInBytes({operands.getWeight(), operands.getBias()})}));
    return success();
  }
};

// l2norm(x) => launch of a kernel over rows
struct LowerL2Norm : Lowering<L2NormOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(L2NormOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    double eps = op.getEps().convertToDouble();
    rewriter.replaceOp(
        op, launch.overRows("l2norm", launch.parameters(eps), operands.getX(), op.getType(),
                            [&](KernelBuilder &b, ValueRange args) { emitL2Norm(b, args, eps); }));
    return success();
  }
};

// scale_parts(x) => launch of a kernel over rows
struct LowerScaleParts : Lowering<ScalePartsOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(ScalePartsOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    rewriter.replaceOp(
        op,
        launch.overRows("scale_parts", launch.parameters(op.getFactorsAttr(), op.getWidthsAttr()),
                        operands.getX(), op.getType(), [&](KernelBuilder &b, ValueRange args) {
                          emitScaleParts(b, args, op.getFactors(), op.getWidths());
                        }));
    return success();
  }
};

/// An op that computes each element of the result from the same elements of its operands, and from
/// a number of its own where it has one.
/// op(x, ...) => launch of a kernel over rows.
template <typename Op> struct LowerElementwise : Lowering<Op> {
  using Compute = Value (*)(KernelBuilder &, ArrayRef<Value> elements, float number);
  using Number = APFloat (Op::*)();
  LowerElementwise(const TypeConverter &converter, MLIRContext *context, KernelLibrary &kernels,
                   Compute compute, Number number = nullptr)
      : Lowering<Op>(converter, context, kernels), compute(compute), number(number) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), this->kernels);
    if (isQuantized(cast<RankedTensorType>(op.getType()).getElementType()))
      return rewriter.notifyMatchFailure(op, "a quantized row is more than its elements");
    ValueRange inputs = operands.getOperands();
    StringRef name = Op::getOperationName().drop_front(strlen("mica."));
    double value = number ? (op.*number)().convertToDouble() : 0;
    auto build = [&](KernelBuilder &b, ValueRange args) {
      emitElementwise(b, args, [&](KernelBuilder &b, ArrayRef<Value> elements) {
        return compute(b, elements, static_cast<float>(value));
      });
    };
    rewriter.replaceOp(op, launch.overRows(name,
                                           number ? launch.parameters(value) : launch.parameters(),
                                           inputs, op.getType(), build));
    return success();
  }
  Compute compute;
  Number number;
};

/// A cast to quantized rows. Other casts are elementwise.
/// cast(x) => launch of a kernel that quantizes rows.
struct LowerQuantize : Lowering<CastOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(CastOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isQuantized(op.getType().getElementType()))
      return rewriter.notifyMatchFailure(op, "the result is not quantized");
    Launcher launch(rewriter, op.getLoc(), kernels);
    int64_t rowBits = integerRowBits(op.getType().getElementType());
    rewriter.replaceOp(
        op, launch.overRows("quantize", launch.parameters(op.getType().getShape().back(), rowBits),
                            operands.getX(), op.getType(), [&](KernelBuilder &b, ValueRange args) {
                              emitQuantize(b, args, rowBits);
                            }));
    return success();
  }
};

// probe(x) => exec.probe(x)
struct LowerProbe : Lowering<ProbeOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(ProbeOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Value layer = op.getLayer();
    if (!layer)
      layer = arith::ConstantIndexOp::create(rewriter, op.getLoc(), -1);
    exec::ProbeOp::create(rewriter, op.getLoc(), op.getNameAttr(), layer, operands.getX());
    rewriter.replaceOp(op, operands.getX());
    return success();
  }
};

/// An op whose kernel its types describe in full: a task per row of the operand `counted`.
/// op(x, ...) => launch of the kernel of the op.
template <typename Op> struct LowerRows : Lowering<Op> {
  using Emit = void (*)(KernelBuilder &, ValueRange);
  LowerRows(const TypeConverter &converter, MLIRContext *context, KernelLibrary &kernels, Emit emit,
            unsigned counted = 0)
      : Lowering<Op>(converter, context, kernels), emit(emit), counted(counted) {}
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), this->kernels);
    Value rows = launch.rowsOf(operands.getOperands()[counted]);
    StringRef name = Op::getOperationName().drop_front(strlen("mica."));
    rewriter.replaceOp(op, launch(name, launch.parameters(), rows, operands.getOperands(),
                                  launch.empty(op.getType(), rows), emit));
    return success();
  }
  Emit emit;
  unsigned counted;
};

// split_heads => expand_shape
struct LowerSplitHeads : Lowering<SplitHeadsOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(SplitHeadsOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    Value rows = Launcher(rewriter, op.getLoc(), kernels).rowsOf(operands.getX());
    SmallVector<OpFoldResult> shape{rows, rewriter.getIndexAttr(type.getDimSize(1)),
                                    rewriter.getIndexAttr(type.getDimSize(2))};
    rewriter.replaceOpWithNewOp<tensor::ExpandShapeOp>(
        op, type, operands.getX(), ArrayRef<ReassociationIndices>{{0}, {1, 2}}, shape);
    return success();
  }
};

// merge_heads => collapse_shape
struct LowerMergeHeads : Lowering<MergeHeadsOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(MergeHeadsOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<tensor::CollapseShapeOp>(
        op, op.getType(), operands.getX(), ArrayRef<ReassociationIndices>{{0}, {1, 2}});
    return success();
  }
};

// split => extract_slice of the columns of each part
struct LowerSplit : Lowering<SplitOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(SplitOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Value rows = Launcher(rewriter, op.getLoc(), kernels).rowsOf(operands.getX());
    SmallVector<OpFoldResult> ones(2, rewriter.getIndexAttr(1));
    SmallVector<Value> parts;
    int64_t column = 0;
    for (Type part : op.getResultTypes()) {
      auto type = cast<RankedTensorType>(part);
      SmallVector<OpFoldResult> offsets{rewriter.getIndexAttr(0), rewriter.getIndexAttr(column)};
      SmallVector<OpFoldResult> sizes{rows, rewriter.getIndexAttr(type.getDimSize(1))};
      parts.push_back(tensor::ExtractSliceOp::create(rewriter, op.getLoc(), type, operands.getX(),
                                                     offsets, sizes, ones));
      column += type.getDimSize(1);
    }
    rewriter.replaceOp(op, parts);
    return success();
  }
};

/// An op in which ranks exchange columns of rows, or that takes a rank's columns.
/// op(x) => the op of the exec dialect, which the runtime computes
template <typename Op, typename ExecOp> struct LowerColumns : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), this->kernels);
    Value x = operands.getX(), target = launch.empty(op.getType(), launch.rowsOf(x));
    Value result = ExecOp::create(rewriter, op.getLoc(), target.getType(), x, target).getResult();
    rewriter.replaceOp(op, result);
    return success();
  }
};

} // namespace

void mica::cpu::populateRowPatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                    KernelLibrary &kernels) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerColumns<AllGatherOp, exec::AllGatherOp>,
               LowerColumns<AllSliceOp, exec::AllSliceOp>>(converter, context, kernels);
  patterns.add<LowerRmsNorm, LowerLayerNorm, LowerL2Norm, LowerScaleParts, LowerQuantize,
               LowerProbe, LowerSplitHeads, LowerMergeHeads, LowerSplit>(converter, context,
                                                                         kernels);
  patterns.add<LowerRows<SelectRowsOp>>(converter, context, kernels, emitSelectRows, 1);
  patterns.add<LowerRows<SelectHeadOp>>(converter, context, kernels, emitSelectHead);
  patterns.add<LowerRows<SigmoidGateOp>>(converter, context, kernels, emitSigmoidGate);
  patterns.add<LowerRows<ConcatHeadsOp>>(converter, context, kernels, emitConcatHeads);
  patterns.add<LowerRows<SoftplusOp>>(converter, context, kernels, emitSoftplus);
  patterns.add<LowerRows<DecayOp>>(converter, context, kernels, emitDecay);
  patterns.add<LowerRows<ScaleHeadsOp>>(converter, context, kernels, emitScaleHeads);
  patterns.add<LowerElementwise<ScaleOp>>(
      converter, context, kernels,
      [](KernelBuilder &b, ArrayRef<Value> v, float factor) {
        return b.mulf(v[0], b.splat(factor));
      },
      &ScaleOp::getFactor);
  patterns.add<LowerElementwise<SoftcapOp>>(
      converter, context, kernels,
      [](KernelBuilder &b, ArrayRef<Value> v, float cap) -> Value {
        Value bent = math::TanhOp::create(b, b.mulf(v[0], b.splat(1 / cap)));
        return b.mulf(b.splat(cap), bent);
      },
      &SoftcapOp::getCap);
  patterns.add<LowerElementwise<SigmoidOp>>(
      converter, context, kernels, [](KernelBuilder &b, ArrayRef<Value> v, float) {
        return b.divf(b.splat(1), b.addf(b.splat(1), b.exp(b.subf(b.splat(0), v[0]))));
      });
  patterns.add<LowerElementwise<AddOp>>(
      converter, context, kernels,
      [](KernelBuilder &b, ArrayRef<Value> v, float) { return b.addf(v[0], v[1]); });
  patterns.add<LowerElementwise<MulOp>>(
      converter, context, kernels,
      [](KernelBuilder &b, ArrayRef<Value> v, float) { return b.mulf(v[0], v[1]); });
  patterns.add<LowerElementwise<CastOp>>(
      converter, context, kernels, [](KernelBuilder &, ArrayRef<Value> v, float) { return v[0]; });
  forEachActivationOp([&](auto op) {
    using Op = decltype(op);
    patterns.add<LowerElementwise<Op>>(converter, context, kernels,
                                       [](KernelBuilder &b, ArrayRef<Value> v, float) {
                                         return emitActivation(b, v[0], Op::getActivation());
                                       });
  });
}
