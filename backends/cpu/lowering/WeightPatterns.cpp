//===- WeightPatterns.cpp - weights as views of the program's weights --------------===//

#include "backends/cpu/lowering/Lowering.h"
#include "backends/cpu/lowering/Passes.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// The weights that the program maps: an argument of every entry function.
static FailureOr<Value> weightsBuffer(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!isEntry(function))
    return op->emitOpError("fetches a weight outside of an entry function: pass it as an argument");
  unsigned fromEnd = kEntryArguments - static_cast<unsigned>(EntryArgument::Weights);
  return function.getArgument(function.getNumArguments() - fromEnd);
}

/// The tensor of `type` that stands at byte `offset` of the weights.
static Value weightAt(ConversionPatternRewriter &rewriter, Location loc, Value weights, Value offset, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto buffer = MemRefType::get(tensor.getShape(), tensor.getElementType());
  Value view = memref::ViewOp::create(rewriter, loc, buffer, weights, offset, ValueRange());
  return bufferization::ToTensorOp::create(rewriter, loc, tensor, view, /*restrict=*/true);
}

namespace {

struct LowerGetWeight : Lowering<GetWeightOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(GetWeightOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, op.getWeightAttr());
    if (!weight.getOffset())
      return op.emitOpError() << "fetches " << op.getWeightAttr() << ", which has no place in the program yet";
    FailureOr<Value> weights = weightsBuffer(op);
    if (failed(weights))
      return failure();
    Value offset = arith::ConstantIndexOp::create(rewriter, op.getLoc(), *weight.getOffset());
    Type type = getTypeConverter()->convertType(op.getType());
    rewriter.replaceOp(op, weightAt(rewriter, op.getLoc(), *weights, offset, type));
    return success();
  }
};

} // namespace

void mica::cpu::populateWeightPatterns(RewritePatternSet &patterns, const TypeConverter &converter, KernelLibrary &kernels) {
  patterns.add<LowerGetWeight>(converter, patterns.getContext(), kernels);
}
