//===- Bufferization.cpp - bufferization of the exec ops ------------------===//

#include "ir/Exec/Exec.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/DstBufferizableOpInterfaceImpl.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::bufferization;
using namespace mica::exec;

/// The buffers of `values`; values that are not tensors are unchanged.
static FailureOr<SmallVector<Value>> buffersOf(RewriterBase &rewriter, ValueRange values,
                                               const BufferizationOptions &options,
                                               const BufferizationState &state) {
  SmallVector<Value> buffers;
  for (Value value : values) {
    if (isa<TensorType>(value.getType())) {
      FailureOr<Value> buffer = getBuffer(rewriter, value, options, state);
      if (failed(buffer))
        return failure();
      value = *buffer;
    }
    buffers.push_back(value);
  }
  return buffers;
}

namespace {

struct LaunchBufferization
    : DstBufferizableOpInterfaceExternalModel<LaunchBufferization, LaunchOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto launch = cast<LaunchOp>(op);
    FailureOr<SmallVector<Value>> inputs = buffersOf(rewriter, launch.getInputs(), options, state);
    FailureOr<SmallVector<Value>> outputs =
        buffersOf(rewriter, launch.getOutputs(), options, state);
    if (failed(inputs) || failed(outputs))
      return failure();
    SmallVector<Value> results(outputs->begin(), outputs->end());
    // Kernels take buffers with dynamic strides, so that views can be passed as well: cast to the
    // argument types.
    auto kernel = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(op, launch.getKernelAttr());
    unsigned argument = 2;
    for (SmallVector<Value> *values : {&*inputs, &*outputs})
      for (Value &value : *values) {
        Type wanted = kernel.getFunctionType().getInput(argument++);
        if (value.getType() != wanted)
          value = memref::CastOp::create(rewriter, op->getLoc(), wanted, value);
      }
    LaunchOp::create(rewriter, op->getLoc(), TypeRange(), launch.getKernelAttr(), launch.getTasks(),
                     *inputs, *outputs);
    replaceOpWithBufferizedValues(rewriter, op, results);
    return success();
  }
};

struct MatmulBufferization
    : DstBufferizableOpInterfaceExternalModel<MatmulBufferization, MatmulOp> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto matmul = cast<MatmulOp>(op);
    FailureOr<SmallVector<Value>> buffers = buffersOf(rewriter, op->getOperands(), options, state);
    if (failed(buffers))
      return failure();
    MatmulOp::create(rewriter, op->getLoc(), Type(), (*buffers)[0], (*buffers)[1], (*buffers)[2],
                     matmul.getAccumulate(), matmul.getK(), matmul.getN());
    replaceOpWithBufferizedValues(rewriter, op, (*buffers)[2]);
    return success();
  }
  // Without `accumulate` the output is only written.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    auto matmul = cast<MatmulOp>(op);
    return !matmul.isDpsInit(&operand) || matmul.getAccumulate();
  }
};

/// For ops between ranks.
template <typename Op>
struct RankOpBufferization : DstBufferizableOpInterfaceExternalModel<RankOpBufferization<Op>, Op> {
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    FailureOr<SmallVector<Value>> buffers = buffersOf(rewriter, op->getOperands(), options, state);
    if (failed(buffers))
      return failure();
    Op::create(rewriter, op->getLoc(), TypeRange(), *buffers, op->getAttrDictionary().getValue());
    replaceOpWithBufferizedValues(rewriter, op, buffers->back());
    return success();
  }
  // Only the rows that are shared were computed before.
  bool bufferizesToMemoryRead(Operation *op, OpOperand &operand, const AnalysisState &) const {
    return std::is_same_v<Op, ShareRowsOp> || !cast<Op>(op).isDpsInit(&operand);
  }
};

struct ProbeBufferization : BufferizableOpInterface::ExternalModel<ProbeBufferization, ProbeOp> {
  bool bufferizesToMemoryRead(Operation *, OpOperand &, const AnalysisState &) const {
    return true;
  }
  bool bufferizesToMemoryWrite(Operation *, OpOperand &, const AnalysisState &) const {
    return false;
  }
  AliasingValueList getAliasingValues(Operation *, OpOperand &, const AnalysisState &) const {
    return {};
  }
  LogicalResult bufferize(Operation *op, RewriterBase &rewriter,
                          const BufferizationOptions &options, BufferizationState &state) const {
    auto probe = cast<ProbeOp>(op);
    FailureOr<SmallVector<Value>> buffer = buffersOf(rewriter, probe.getX(), options, state);
    if (failed(buffer))
      return failure();
    rewriter.replaceOpWithNewOp<ProbeOp>(op, probe.getNameAttr(), probe.getLayer(),
                                         buffer->front());
    return success();
  }
};

} // namespace

void mica::exec::registerBufferization(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, ExecDialect *) {
    LaunchOp::attachInterface<LaunchBufferization>(*context);
    MatmulOp::attachInterface<MatmulBufferization>(*context);
    AllGatherOp::attachInterface<RankOpBufferization<AllGatherOp>>(*context);
    AllSliceOp::attachInterface<RankOpBufferization<AllSliceOp>>(*context);
    LocalRowsOp::attachInterface<RankOpBufferization<LocalRowsOp>>(*context);
    ShareRowsOp::attachInterface<RankOpBufferization<ShareRowsOp>>(*context);
    ProbeOp::attachInterface<ProbeBufferization>(*context);
  });
}
