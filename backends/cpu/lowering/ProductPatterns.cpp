//===- ProductPatterns.cpp - matmuls with weights -------------------------===//

#include "backends/cpu/kernels/matmul/BlockReader.h"
#include "backends/cpu/kernels/matmul/Products.h"
#include "backends/cpu/kernels/rows/Rows.h"
#include "backends/cpu/layout/LaneDepth.h"
#include "backends/cpu/lowering/Lowering.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

/// A launch of a kernel that gathers the rows `indices` of the table of `op`.
template <typename Op>
FailureOr<Value> gatherRows(Op op, Launcher &launch, Value indices, Value packed) {
  WeightSpec table = weightSpecOf(op.getTable());
  if (table.blocks() && !isPacked(op.getTable()))
    return op.emitOpError("gathers from a quantized table without a packed layout");
  Value rows = launch.rowsOf(indices);
  return launch("embedding", launch.parameters(table.element, table.n, table.k), rows,
                {indices, packed}, launch.empty(op.getType(), rows),
                [&](KernelBuilder &b, ValueRange args) { emitEmbedding(b, args, table); },
                {.rowWeightBytes = sizeInBytes(packed) / table.n})[0];
}

// embedding(tokens, table) => launch of a kernel that gathers rows
struct LowerEmbedding : Lowering<EmbeddingOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(EmbeddingOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    FailureOr<Value> rows = gatherRows(op, launch, operands.getTokens(), operands.getTable());
    if (failed(rows))
      return failure();
    rewriter.replaceOp(op, *rows);
    return success();
  }
};

// sharded_embedding(tokens, part) => the rows of the rank's part are gathered and shared
struct LowerShardedEmbedding : Lowering<ShardedEmbeddingOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(ShardedEmbeddingOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value tokens = operands.getTokens();
    int64_t n = op.getTable().getType().getDimSize(0);
    Value local =
        exec::LocalRowsOp::create(rewriter, op.getLoc(), tokens.getType(), tokens,
                                  launch.empty(tokens.getType(), launch.rowsOf(tokens)), n)
            .getResult();
    FailureOr<Value> rows = gatherRows(op, launch, local, operands.getTable());
    if (failed(rows))
      return failure();
    Value shared =
        exec::ShareRowsOp::create(rewriter, op.getLoc(), rows->getType(), tokens, *rows, n)
            .getResult();
    rewriter.replaceOp(op, shared);
    return success();
  }
};

/// A oneDNN matmul with an epilogue, a kernel that computes the result from the sums. Processes
/// panels of columns, so that the sums, and the blocks that are expanded for oneDNN, are still in
/// the CPU cache when they are used.
class PanelProduct {
public:
  /// The operands of an epilogue: the sums [T, columns] of the columns beginning at `first`.
  struct Panel {
    Value sums, first;
    int64_t columns;
  };
  /// Emits the epilogue of a panel; returns the new `target`.
  using Epilogue = llvm::function_ref<Value(Panel panel, Value target)>;

  PanelProduct(Launcher &launch, Value x, Value packed, const WeightSpec &weight)
      : launch(launch), x(x), packed(packed), weight(weight) {}

  Value lower(Value target, Epilogue epilogue) {
    int64_t blocks = blocksOf(weight.n), whole = blocks / kPanelBlocks,
            rest = blocks % kPanelBlocks;
    if (whole > 1)
      target = loop(whole, target, epilogue);
    else if (whole == 1)
      target = panel(launch.constant(0), kPanelBlocks, scratch(kPanelBlocks), target, epilogue)[0];
    if (rest)
      target =
          panel(launch.constant(whole * kPanelBlocks), rest, scratch(rest), target, epilogue)[0];
    return target;
  }

private:
  /// 1024 columns: wide enough for oneDNN's threads; the sums of 512 rows take 2 MiB.
  static constexpr int64_t kPanelBlocks = 16;

  /// Whether blocks are expanded, for oneDNN, to floats of the type of the rows.
  bool expands() const { return weight.blocks(); }

  /// The type of `blocks` expanded blocks of 64 columns.
  RankedTensorType expandedType(int64_t blocks) const {
    Type element = getElementTypeOrSelf(x);
    int64_t depth = laneDepth(element);
    return RankedTensorType::get(
        {blocks, expandedColumns(weight.k, depth) / depth, kBlockColumns, depth}, element);
  }

  /// Tensors for the sums and, if blocks are expanded, the expanded weights.
  SmallVector<Value> scratch(int64_t blocks) {
    auto sums = RankedTensorType::get({ShapedType::kDynamic, blocks * kBlockColumns},
                                      launch.rewriter.getF32Type());
    SmallVector<Value> values{launch.empty(sums, launch.rowsOf(x))};
    if (expands())
      values.push_back(launch.empty(expandedType(blocks), {}));
    return values;
  }

  Value loop(int64_t panels, Value target, Epilogue epilogue) {
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
        panel(op.getInductionVar(), kPanelBlocks, carried.drop_front(), carried.front(), epilogue));
    return op.getResult(0);
  }

  /// Emits the panel of `blocks` blocks beginning at block `first`. Returns the new values of the
  /// target and of `scratch`.
  SmallVector<Value> panel(Value first, int64_t blocks, ValueRange scratch, Value target,
                           Epilogue epilogue) {
    OpBuilder &builder = launch.rewriter;
    SmallVector<Value> next(scratch);
    if (expands())
      next[1] =
          launch("expand_blocks", launch.parameters(weight.element, weight.n, weight.k),
                 launch.constant(blocks), {packed, first}, next[1],
                 [&](KernelBuilder &b, ValueRange args) { emitExpandBlocks(b, args, weight); })[0];
    Value blocksOfPanel = expands() ? next[1] : slice(first, blocks);
    int64_t columns = blocks * kBlockColumns;
    next[0] = exec::MatmulOp::create(builder, launch.loc, next[0].getType(), x, blocksOfPanel,
                                     next[0], /*accumulate=*/false, weight.k, columns)
                  .getResult();
    Value column =
        arith::MulIOp::create(builder, launch.loc, first, launch.constant(kBlockColumns));
    next.insert(next.begin(), epilogue({next[0], column, columns}, target));
    return next;
  }

  /// A slice of `blocks` blocks of the packed weight.
  Value slice(Value first, int64_t blocks) {
    OpBuilder &builder = launch.rewriter;
    auto whole = cast<RankedTensorType>(packed.getType());
    SmallVector<int64_t> shape(whole.getShape());
    shape[0] = blocks;
    SmallVector<OpFoldResult> offsets(shape.size(), builder.getIndexAttr(0)),
        strides(shape.size(), builder.getIndexAttr(1));
    offsets[0] = first;
    return tensor::ExtractSliceOp::create(
        builder, launch.loc, RankedTensorType::get(shape, whole.getElementType()), packed, offsets,
        getAsIndexOpFoldResult(builder.getContext(), shape), strides);
  }

  Launcher &launch;
  Value x, packed;
  const WeightSpec &weight;
};

/// Only generated kernels support scales within a sum.
static LogicalResult checkKernel(Operation *op, const WeightSpec &weight,
                                 std::optional<KernelKind> kernel) {
  if (kernel == KernelKind::OneDnn && weight.blocks() && weight.rowBits != 0)
    return op->emitOpError("multiplies integer rows by blocks, which only generated kernels do");
  return success();
}

/// A matmul [T, K] x [N, K]^T: the common part of linear and lm_head.
struct Product {
  Operation *op;
  Value x, weight, bias, residual;
  WeightSpec spec;
  std::optional<KernelKind> kernel;

  FailureOr<Value> lower(Launcher &launch) const {
    if (!kernel)
      return op->emitOpError("has no kernel chosen");
    if (failed(checkKernel(op, spec, *kernel)))
      return failure();
    Type result = op->getResult(0).getType();
    Value target = residual ? residual : launch.empty(result, launch.rowsOf(x));
    if (*kernel == KernelKind::Generated)
      return lowerGenerated(launch, target);
    // oneDNN can add its sums to a residual, but supports neither blocks nor a bias.
    bool panels = bias || spec.blocks();
    return panels ? lowerPanels(launch, target) : lowerOneDnn(launch, target);
  }

private:
  Value lowerOneDnn(Launcher &launch, Value target) const {
    return exec::MatmulOp::create(launch.rewriter, launch.loc, target.getType(), x, weight, target,
                                  /*accumulate=*/!!residual, spec.k, spec.n)
        .getResult();
  }

  ProductSpec productSpec() const { return {spec, /*bias=*/!!bias, /*accumulate=*/!!residual}; }
  ArrayAttr key(Launcher &launch) const {
    return launch.parameters(spec.element, spec.n, spec.k, !!bias, !!residual);
  }

  Value lowerGenerated(Launcher &launch, Value target) const {
    SmallVector<Value> inputs{x, weight};
    if (bias)
      inputs.push_back(bias);
    std::string name = productName(residual ? "linear_residual" : "linear", spec.n, spec.k);
    return launch(name, key(launch), launch.constant(blocksOf(spec.n)), inputs, target,
                  [&](KernelBuilder &b, ValueRange args) { emitProduct(b, args, productSpec()); },
                  {.weightBytes = sizeInBytes(weight) + sizeInBytes(bias),
                   .rowFlops = 2 * spec.n * spec.k})[0];
  }

  Value lowerPanels(Launcher &launch, Value target) const {
    auto epilogue = [&](PanelProduct::Panel panel, Value into) {
      SmallVector<Value> inputs{panel.sums, panel.first};
      if (bias)
        inputs.push_back(bias);
      return launch(productName("epilogue", spec.n, spec.k), key(launch), launch.rowsOf(x), inputs,
                    into,
                    [&](KernelBuilder &b, ValueRange args) {
                      emitEpilogue(b, args, productSpec(), panel.columns);
                    },
                    {.weightBytes = sizeInBytes(bias)})[0];
    };
    return PanelProduct(launch, x, weight, spec).lower(target, epilogue);
  }
};

/// Lowers linear and lm_head, which has neither bias nor residual. linear(x, w) => launch of a
/// generated kernel, or exec.matmul, as the op says.
template <typename Op> struct LowerProduct : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (failed(checkProduct(op, op.getX(), op.getWeight())))
      return failure();
    Product product{op,
                    operands.getX(),
                    operands.getWeight(),
                    {},
                    {},
                    weightSpecOf(op.getWeight(), op.getX()),
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

/// Uses generated kernels for any number of rows, like experts, because the matrices of heads are
/// small. head_linear(x, w) => launch of a kernel over heads.
struct LowerHeadLinear : Lowering<HeadLinearOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(HeadLinearOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (failed(checkProduct(op, op.getX(), op.getWeight())))
      return failure();
    WeightSpec weight = weightSpecOf(op.getWeight(), op.getX());
    Launcher launch(rewriter, op.getLoc(), kernels);
    int64_t heads = op.getType().getDimSize(1);
    rewriter.replaceOp(
        op, launch(productName("head_linear", weight.n, weight.k),
                   launch.parameters(weight.element, heads, weight.n, weight.k),
                   launch.constant(heads * blocksOf(weight.n)), operands.getOperands(),
                   launch.empty(op.getType(), launch.rowsOf(operands.getX())),
                   [&](KernelBuilder &b, ValueRange args) { emitHeadProduct(b, args, weight); },
                   {.weightBytes = sizeInBytes(operands.getWeight()),
                    .rowFlops = 2 * heads * weight.n * weight.k}));
    return success();
  }
};

// gated_linear(x, gate_up) => launch of a kernel that multiplies by both matrices and applies the
// activation
struct LowerGatedLinear : Lowering<GatedLinearOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(GatedLinearOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    if (failed(checkProduct(op, op.getX(), op.getWeight())))
      return failure();
    if (isQuantized(op.getType().getElementType()))
      return op.emitOpError("cannot quantize its own result: use mica.cast");
    WeightSpec weight = weightSpecOf(op.getWeight(), op.getX());
    if (failed(checkKernel(op, weight, op.getKernel())))
      return failure();
    Launcher launch(rewriter, op.getLoc(), kernels);
    int64_t inner = op.getType().getDimSize(1);
    Value x = operands.getX(), packed = operands.getWeight();
    Value target = launch.empty(op.getType(), launch.rowsOf(x));
    ArrayAttr key =
        launch.parameters(weight.element, inner, weight.k, stringifyActivation(op.getActivation()));
    auto epilogue = [&](PanelProduct::Panel panel, Value into) {
      return launch(productName("gated_epilogue", inner, weight.k), key, launch.rowsOf(x),
                    {panel.sums, panel.first}, into, [&](KernelBuilder &b, ValueRange args) {
                      emitGatedEpilogue(b, args, inner, op.getActivation(), panel.columns);
                    })[0];
    };
    if (op.getKernel() == KernelKind::OneDnn)
      rewriter.replaceOp(op, PanelProduct(launch, x, packed, weight).lower(target, epilogue));
    else
      rewriter.replaceOp(
          op, launch(productName("gated_linear", inner, weight.k), key,
                     launch.constant(blocksOf(inner)), operands.getOperands(), target,
                     [&](KernelBuilder &b, ValueRange args) {
                       emitGatedProduct(b, args, weight, inner, op.getActivation());
                     },
                     {.weightBytes = sizeInBytes(packed), .rowFlops = 4 * inner * weight.k}));
    return success();
  }
};

} // namespace

void mica::cpu::populateProductPatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                        KernelLibrary &kernels) {
  patterns.add<LowerEmbedding, LowerShardedEmbedding, LowerProduct<LinearOp>,
               LowerProduct<LmHeadOp>, LowerHeadLinear, LowerGatedLinear>(
      converter, patterns.getContext(), kernels);
}
