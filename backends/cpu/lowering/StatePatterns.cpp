//===- StatePatterns.cpp - ops on states of fixed size --------------------===//

#include "backends/cpu/kernels/rows/CausalConv.h"
#include "backends/cpu/kernels/rows/LinearAttention.h"
#include "backends/cpu/lowering/Lowering.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {

// causal_conv1d(x, state) => launch of a kernel that reads and writes the state in place
struct LowerCausalConv1d : Lowering<CausalConv1dOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(CausalConv1dOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    auto type = cast<RankedTensorType>(op.getX().getType());
    int64_t channels = type.getDimSize(1), taps = op.getState().getType().getWindow();
    bool bias = !!op.getBias();
    SmallVector<Value> inputs{operands.getX(), operands.getWeight()};
    if (bias)
      inputs.push_back(operands.getBias());
    llvm::append_values(inputs, operands.getSequences(), operands.getPositions(),
                        operands.getLayer());
    Value result = launch.empty(type, launch.rowsOf(operands.getX())),
          blocks = launch.constant(llvm::divideCeil(channels, kConvChannels));
    int64_t ofRow = channels * static_cast<int64_t>(sizeof(float));
    rewriter.replaceOp(
        op, launch("causal_conv1d", launch.parameters(bias), blocks, inputs,
                   {result, operands.getState()},
                   [&](KernelBuilder &b, ValueRange args) { emitCausalConv1d(b, args, bias); },
                   {.weightBytes = sizeInBytes({operands.getWeight(), operands.getBias()}),
                    .rowCacheBytes = taps * ofRow,
                    .rowFlops = 2 * taps * channels}));
    return success();
  }
};

// linear_attention(q, k, v, state) => launch of a kernel that updates the state in place
struct LowerLinearAttention : Lowering<LinearAttentionOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(LinearAttentionOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    auto type = cast<RankedTensorType>(op.getV().getType());
    RecurrentStateType state = op.getState().getType();
    Value result = launch.empty(type, launch.rowsOf(operands.getV())),
          heads = launch.constant(state.getHeads());
    int64_t ofMatrix = state.getKeyDim() * state.getValueDim(),
            ofRow = state.getKeyDim() + state.getValueDim(),
            rows = RecurrentStateType::kChunk / 2; // average number of rows read from the ring
                                                   // buffer
    int64_t numbers = state.getHeads() * (ofMatrix + rows * ofRow);
    bool beta = !!op.getBeta();
    SmallVector<Value> inputs{operands.getQ(), operands.getK(), operands.getV(),
                              operands.getDecay()};
    if (beta)
      inputs.push_back(operands.getBeta());
    llvm::append_values(inputs, operands.getSequences(), operands.getPositions(),
                        operands.getLayer());
    rewriter.replaceOp(
        op,
        launch(
            "linear_attention", launch.parameters(state.getKeyDim(), state.getValueDim(), beta),
            heads, inputs, {result, operands.getState()},
            [&](KernelBuilder &b, ValueRange args) { emitLinearAttention(b, args, state, beta); },
            {.rowCacheBytes = numbers * static_cast<int64_t>(sizeof(float)),
             // Computing the next matrix takes as many operations as all rows of a chunk need to
             // read one.
             .rowFlops = 2 * (numbers * (beta ? 2 : 1) + state.getHeads() * ofMatrix)}));
    return success();
  }
};

} // namespace

void mica::cpu::populateStatePatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                      KernelLibrary &kernels) {
  patterns.add<LowerCausalConv1d, LowerLinearAttention>(converter, patterns.getContext(), kernels);
}
