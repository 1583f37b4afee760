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
    Value rows = launch.rowsOf(operands.getTokens());
    rewriter.replaceOp(op, launch("embedding", "", rows, operands.getOperands(),
                                  launch.empty(op.getType(), rows), emitEmbedding));
    return success();
  }
};

/// A product [T, K] x [N, K]^T: what linear and lm_head have in common.
struct Product {
  Operation *op;
  Value x, weight, bias, residual;
  RankedTensorType weightType; ///< before packing
  std::optional<KernelKind> kernel;

  FailureOr<Value> lower(Launcher &launch) const {
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    if (cast<RankedTensorType>(weight.getType()).getRank() != 4)
      return op->emitOpError("multiplies by a weight without a packed layout");
    if (!kernel)
      return op->emitOpError("has no kernel chosen");
    int64_t n = weightType.getDimSize(0), k = weightType.getDimSize(1);
    Value target = residual ? residual : launch.empty(result, launch.rowsOf(x));
    if (*kernel == KernelKind::Generated)
      return lowerGenerated(launch, target, n, k);
    Value sum = exec::MatmulOp::create(launch.rewriter, launch.loc, result, x, weight, target,
                                       /*accumulate=*/!!residual, k, n)
                    .getResult();
    if (bias)
      sum = launch("add_bias", "", launch.rowsOf(x), bias, sum, emitAddBias)[0];
    return sum;
  }

  Value lowerGenerated(Launcher &launch, Value target, int64_t n, int64_t k) const {
    ProductSpec spec{n, k, /*bias=*/!!bias, /*accumulate=*/!!residual};
    SmallVector<Value> inputs{x, weight};
    if (bias)
      inputs.push_back(bias);
    std::string name = productName(residual ? "linear_residual" : "linear", n, k);
    Value blocks = launch.constant(roundUp(n, kBlockColumns) / kBlockColumns);
    return launch(name, specOf(n, k, spec.bias), blocks, inputs, target,
                  [&](KernelBuilder &b, ValueRange args) { emitProduct(b, args, spec); })[0];
  }
};

/// linear and lm_head, which has neither bias nor residual.
template <typename Op> struct LowerProduct : Lowering<Op> {
  using Lowering<Op>::Lowering;
  LogicalResult matchAndRewrite(Op op, typename Op::Adaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Product product{op,
                    operands.getX(),
                    operands.getWeight(),
                    {},
                    {},
                    cast<RankedTensorType>(op.getWeight().getType()),
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
    if (op.getKernel() != KernelKind::Generated)
      return op.emitOpError("is lowered as one generated kernel only: decompose it for oneDNN");
    Launcher launch(rewriter, op.getLoc(), kernels);
    auto type = cast<RankedTensorType>(op.getType());
    int64_t inner = type.getDimSize(1),
            k = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(1);
    rewriter.replaceOp(op, launch(productName("gated_linear", inner, k),
                                  specOf(inner, k, stringifyActivation(op.getActivation())),
                                  launch.constant(roundUp(inner, kBlockColumns) / kBlockColumns),
                                  operands.getOperands(),
                                  launch.empty(type, launch.rowsOf(operands.getX())),
                                  [&](KernelBuilder &b, ValueRange args) {
                                    emitGatedProduct(b, args, inner, k, op.getActivation());
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
