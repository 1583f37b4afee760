//===- ProductPatterns.cpp - products with weights --------------------------------===//

#include "backends/cpu/lowering/Lowering.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

struct LowerEmbedding : Lowering<EmbeddingOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(EmbeddingOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    WeightSpec table = weightSpecOf(op.getTable());
    if (isQuantized(table.element) && !isPacked(op.getTable()))
      return op.emitOpError("gathers from a quantised table without a packed layout");
    Value rows = launch.rowsOf(operands.getTokens());
    rewriter.replaceOp(
        op, launch("embedding", specOf(table.element, table.n, table.k), rows,
                   operands.getOperands(), launch.empty(op.getType(), rows),
                   [&](KernelBuilder &b, ValueRange args) { emitEmbedding(b, args, table); }));
    return success();
  }
};

/// A product of quantised rows by oneDNN: sums of integers, and behind them the kernel that makes
/// numbers of them. It goes by panels of columns, so that the sums, and the weights of 4 bits that
/// are widened for oneDNN, are still in the cache where they are needed next.
class IntegerProduct {
public:
  /// Makes numbers of the sums [T, columns] of the columns from `first` on: the new `target`.
  using Finish = llvm::function_ref<Value(Value sums, Value first, int64_t columns, Value target)>;

  IntegerProduct(Launcher &launch, Value x, Value packed, const WeightSpec &weight)
      : launch(launch), x(x), packed(packed), weight(weight),
        from(weight.element, weight.n, weight.k),
        to(Int8Type::get(launch.rewriter.getContext()), weight.n, weight.k) {}

  Value lower(Value target, Finish finish) {
    int64_t whole = from.blocks / kPanelBlocks, rest = from.blocks % kPanelBlocks;
    if (whole > 1)
      target = loop(whole, target, finish);
    else if (whole == 1)
      target = panel(launch.constant(0), kPanelBlocks, scratch(kPanelBlocks), target, finish)[0];
    if (rest)
      target = panel(launch.constant(whole * kPanelBlocks), rest, scratch(rest), target, finish)[0];
    return target;
  }

private:
  /// 1024 columns: wide enough for oneDNN's threads, and 512 rows of their sums take 2 MB.
  static constexpr int64_t kPanelBlocks = 16;

  bool widens() const { return isa<Int4Type>(weight.element); }

  /// Room for the sums and, where the weights are widened, for those.
  SmallVector<Value> scratch(int64_t blocks) {
    Builder &builder = launch.rewriter;
    SmallVector<Value> values{launch.empty(
        RankedTensorType::get({ShapedType::kDynamic, blocks * kBlockColumns}, builder.getI32Type()),
        launch.rowsOf(x))};
    if (widens())
      values.push_back(
          launch.empty(RankedTensorType::get({blocks * to.blockBytes}, builder.getI8Type()), {}));
    return values;
  }

  Value loop(int64_t panels, Value target, Finish finish) {
    SmallVector<Value> inits{target};
    llvm::append_range(inits, scratch(kPanelBlocks));
    auto op = scf::ForOp::create(launch.rewriter, launch.loc, launch.constant(0),
                                 launch.constant(panels * kPanelBlocks),
                                 launch.constant(kPanelBlocks), inits);
    OpBuilder::InsertionGuard guard(launch.rewriter);
    launch.rewriter.setInsertionPointToStart(op.getBody());
    ValueRange carried = op.getRegionIterArgs();
    scf::YieldOp::create(
        launch.rewriter, launch.loc,
        panel(op.getInductionVar(), kPanelBlocks, carried.drop_front(), carried.front(), finish));
    return op.getResult(0);
  }

  /// The target and the scratch values after the panel of `blocks` blocks from `first` on.
  SmallVector<Value> panel(Value first, int64_t blocks, ValueRange scratch, Value target,
                           Finish finish) {
    OpBuilder &builder = launch.rewriter;
    SmallVector<Value> next(scratch);
    if (widens())
      next[1] = launch(
          "expand_int4", specOf(weight.n, weight.k), launch.constant(blocks), {packed, first},
          next[1], [&](KernelBuilder &b, ValueRange args) { emitExpandInt4(b, args, weight); })[0];
    Value panels = widens() ? next[1] : slice(first, blocks);
    int64_t columns = blocks * kBlockColumns;
    next[0] = exec::MatmulOp::create(builder, launch.loc, next[0].getType(), x, panels, next[0],
                                     /*accumulate=*/false, weight.k, columns)
                  .getResult();
    Value column =
        arith::MulIOp::create(builder, launch.loc, first, launch.constant(kBlockColumns));
    next.insert(next.begin(), finish(next[0], column, columns, target));
    return next;
  }

  /// Blocks of the weight itself.
  Value slice(Value first, int64_t blocks) {
    OpBuilder &builder = launch.rewriter;
    Value offset =
        arith::MulIOp::create(builder, launch.loc, first, launch.constant(from.blockBytes));
    auto type = RankedTensorType::get({blocks * from.blockBytes}, builder.getI8Type());
    return tensor::ExtractSliceOp::create(
        builder, launch.loc, type, packed, ArrayRef<OpFoldResult>{offset},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(blocks * from.blockBytes)},
        ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
  }

  Launcher &launch;
  Value x, packed;
  const WeightSpec &weight;
  QuantizedMatrix from, to;
};

/// A product [T, K] x [N, K]^T: what linear and lm_head have in common.
struct Product {
  Operation *op;
  Value x, weight, bias, residual;
  WeightSpec spec;
  std::optional<KernelKind> kernel;

  FailureOr<Value> lower(Launcher &launch) const {
    if (!kernel)
      return op->emitOpError("has no kernel chosen");
    Type result = op->getResult(0).getType();
    Value target = residual ? residual : launch.empty(result, launch.rowsOf(x));
    if (*kernel == KernelKind::Generated)
      return lowerGenerated(launch, target);
    return isQuantized(spec.element) ? lowerIntegers(launch, target) : lowerOneDnn(launch, target);
  }

private:
  Value lowerOneDnn(Launcher &launch, Value target) const {
    Value sum = exec::MatmulOp::create(launch.rewriter, launch.loc, target.getType(), x, weight,
                                       target, /*accumulate=*/!!residual, spec.k, spec.n)
                    .getResult();
    if (bias)
      sum = launch("add_bias", "", launch.rowsOf(x), bias, sum, emitAddBias)[0];
    return sum;
  }

  ProductSpec productSpec() const { return {spec, /*bias=*/!!bias, /*accumulate=*/!!residual}; }
  std::string key() const { return specOf(spec.element, spec.n, spec.k, !!bias, !!residual); }

  Value lowerGenerated(Launcher &launch, Value target) const {
    SmallVector<Value> inputs{x, weight};
    if (bias)
      inputs.push_back(bias);
    std::string name = productName(residual ? "linear_residual" : "linear", spec.n, spec.k);
    return launch(
        name, key(), launch.constant(blocksOf(spec.n)), inputs, target,
        [&](KernelBuilder &b, ValueRange args) { emitProduct(b, args, productSpec()); })[0];
  }

  Value lowerIntegers(Launcher &launch, Value target) const {
    auto finish = [&](Value sums, Value first, int64_t columns, Value into) {
      SmallVector<Value> inputs{x, weight, sums, first};
      if (bias)
        inputs.push_back(bias);
      return launch(productName("dequantize", spec.n, spec.k), key(), launch.rowsOf(x), inputs,
                    into, [&](KernelBuilder &b, ValueRange args) {
                      emitDequantize(b, args, productSpec(), columns);
                    })[0];
    };
    return IntegerProduct(launch, x, weight, spec).lower(target, finish);
  }
};

/// linear and lm_head, which has neither bias nor residual.
template <typename Op> struct LowerProduct : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isPacked(op.getWeight()))
      return op.emitOpError("multiplies by a weight without a packed layout");
    Product product{op,
                    operands.getX(),
                    operands.getWeight(),
                    {},
                    {},
                    weightSpecOf(op.getWeight()),
                    op.getKernel()};
    if constexpr (std::is_same_v<Op, LinearOp>) {
      product.bias = operands.getBias();
      product.residual = operands.getResidual();
    }
    Launcher launch(rewriter, op.getLoc(), this->kernels);
    FailureOr<Value> result = product.lower(launch);
    if (failed(result))
      return failure();
    rewriter.replaceOp(op, *result);
    return success();
  }
};

struct LowerGatedLinear : Lowering<GatedLinearOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(GatedLinearOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (!isPacked(op.getWeight()))
      return op.emitOpError("multiplies by a weight without a packed layout");
    WeightSpec weight = weightSpecOf(op.getWeight());
    bool onednn = op.getKernel() == KernelKind::OneDnn;
    if (onednn && !isQuantized(weight.element))
      return op.emitOpError("is lowered as one generated kernel only: decompose it for oneDNN");
    Launcher launch(rewriter, op.getLoc(), kernels);
    int64_t inner = op.getType().getDimSize(1);
    Value x = operands.getX(), packed = operands.getWeight();
    Value target = launch.empty(op.getType(), launch.rowsOf(x));
    std::string key =
        specOf(weight.element, inner, weight.k, stringifyActivation(op.getActivation()));
    auto finish = [&](Value sums, Value first, int64_t columns, Value into) {
      return launch(productName("dequantize_gated", inner, weight.k), key, launch.rowsOf(x),
                    {x, packed, sums, first}, into, [&](KernelBuilder &b, ValueRange args) {
                      emitDequantizeGated(b, args, weight, inner, op.getActivation(), columns);
                    })[0];
    };
    if (onednn)
      rewriter.replaceOp(op, IntegerProduct(launch, x, packed, weight).lower(target, finish));
    else
      rewriter.replaceOp(op, launch(productName("gated_linear", inner, weight.k), key,
                                    launch.constant(blocksOf(inner)), operands.getOperands(),
                                    target, [&](KernelBuilder &b, ValueRange args) {
                                      emitGatedProduct(b, args, weight, inner, op.getActivation());
                                    }));
    return success();
  }
};

} // namespace

void mica::cpu::populateProductPatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                        KernelLibrary &kernels) {
  patterns.add<LowerEmbedding, LowerProduct<LinearOp>, LowerProduct<LmHeadOp>, LowerGatedLinear>(
      converter, patterns.getContext(), kernels);
}
