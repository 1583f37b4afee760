//===- WeightPatterns.cpp - weights as views of the program's weights -----===//

#include "backends/cpu/lowering/Lowering.h"
#include "backends/cpu/lowering/Passes.h"
#include "ir/Mica/EntrySignature.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// The mapped weights of the program, an argument of every entry function.
static FailureOr<Value> weightsBuffer(Operation *op) {
  auto function = op->getParentOfType<func::FuncOp>();
  if (!isEntry(function))
    return op->emitOpError("fetches a weight outside of an entry function: pass it as an argument");
  return Value(EntrySignature(function).argument(EntryRole::Weights));
}

/// The tensor of type `type` at byte offset `offset` of the weights.
static Value weightAt(ConversionPatternRewriter &rewriter, Location loc, Value weights,
                      Value offset, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  auto buffer = MemRefType::get(tensor.getShape(), tensor.getElementType());
  Value view = memref::ViewOp::create(rewriter, loc, buffer, weights, offset, ValueRange());
  return bufferization::ToTensorOp::create(rewriter, loc, tensor, view, /*restrict=*/true);
}

/// The number at `index` of a constant table.
static Value entryOf(ConversionPatternRewriter &rewriter, Location loc, memref::GlobalOp table,
                     Value index) {
  Value buffer = memref::GetGlobalOp::create(rewriter, loc, table.getType(), table.getSymName());
  Value entry = memref::LoadOp::create(rewriter, loc, buffer, index);
  return arith::IndexCastOp::create(rewriter, loc, rewriter.getIndexType(), entry);
}

/// The byte offset of a weight in the weights of the program.
static FailureOr<int64_t> offsetOf(Operation *op, FlatSymbolRefAttr symbol) {
  auto weight = SymbolTable::lookupNearestSymbolFrom<WeightOp>(op, symbol);
  if (!weight.getOffset())
    return op->emitOpError() << "fetches " << symbol
                             << ", which has no offset: run cpu-assign-layouts";
  return static_cast<int64_t>(*weight.getOffset());
}

namespace {

// get_weight @w => a view of the program's weights at the offset of @w
struct LowerGetWeight : Lowering<GetWeightOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(GetWeightOp op, OpAdaptor,
                                ConversionPatternRewriter &rewriter) const override {
    FailureOr<int64_t> place = offsetOf(op, op.getWeightAttr());
    FailureOr<Value> weights = weightsBuffer(op);
    if (failed(place) || failed(weights))
      return failure();
    Value offset = arith::ConstantIndexOp::create(rewriter, op.getLoc(), *place);
    Type type = getTypeConverter()->convertType(op.getType());
    rewriter.replaceOp(op, weightAt(rewriter, op.getLoc(), *weights, offset, type));
    return success();
  }
};

// select_weight [@a, @b, ...][%i] => the weight at the i-th entry of a constant table of offsets
struct LowerSelectWeight : Lowering<SelectWeightOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(SelectWeightOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    SmallVector<int64_t> offsets;
    for (auto symbol : op.getWeights().getAsRange<FlatSymbolRefAttr>()) {
      FailureOr<int64_t> place = offsetOf(op, symbol);
      if (failed(place))
        return failure();
      offsets.push_back(*place);
    }
    FailureOr<Value> weights = weightsBuffer(op);
    if (failed(weights))
      return failure();
    Location loc = op.getLoc();
    Value offset =
        entryOf(rewriter, loc, kernels.getOrCreateTable("weight_offsets", ArrayRef(offsets), loc),
                operands.getIndex());
    rewriter.replaceOp(op, weightAt(rewriter, loc, *weights, offset,
                                    getTypeConverter()->convertType(op.getType())));
    return success();
  }
};

// index_table [a, b, ...][%i] => the i-th entry of a constant table
struct LowerIndexTable : Lowering<IndexTableOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(IndexTableOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    memref::GlobalOp table = kernels.getOrCreateTable("numbers", op.getNumbers(), op.getLoc());
    rewriter.replaceOp(op, entryOf(rewriter, op.getLoc(), table, operands.getIndex()));
    return success();
  }
};

} // namespace

void mica::cpu::populateWeightPatterns(RewritePatternSet &patterns, const TypeConverter &converter,
                                       KernelLibrary &kernels) {
  patterns.add<LowerGetWeight, LowerSelectWeight, LowerIndexTable>(converter, patterns.getContext(),
                                                                   kernels);
}
