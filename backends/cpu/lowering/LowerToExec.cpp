//===- LowerToExec.cpp - mica ops => launches and oneDNN products ---------===//

#include "backends/cpu/lowering/Lowering.h"
#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/target/CpuDialect.h"
#include "ir/Mica/EntrySignature.h"

#include "mlir/Dialect/Func/Transforms/FuncConversions.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"

namespace mica::cpu {
#define GEN_PASS_DEF_LOWERTOEXEC
#include "backends/cpu/lowering/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

bool mica::cpu::isEntry(func::FuncOp function) {
  return function.isPublic() && !function.isExternal();
}

/// Integer rows of activations [T, K] and matrices in blocks [..., N, K] as bytes; null: neither.
static RankedTensorType bytesOf(RankedTensorType tensor) {
  auto quantized = dyn_cast<QuantizedElementType>(tensor.getElementType());
  return quantized ? quantized.getPhysicalType(tensor) : RankedTensorType();
}

PhysicalTypeConverter::PhysicalTypeConverter() {
  addConversion([](Type type) { return type; });
  addConversion([](SequenceState state) -> Type {
    RankedTensorType physical = state.getPhysicalType();
    return physical ? Type(physical) : Type(state);
  });
  addConversion([](RankedTensorType tensor) -> Type {
    if (RankedTensorType bytes = bytesOf(tensor))
      return bytes;
    auto layout = dyn_cast_or_null<PackedLayoutAttr>(tensor.getEncoding());
    if (!layout)
      return tensor;
    // A matrix, or a stack of matrices, each of which is packed.
    SmallVector<int64_t> shape(tensor.getShape().drop_back(2));
    int64_t n = tensor.getDimSize(tensor.getRank() - 2), k = tensor.getShape().back();
    shape.append({roundUp(n, layout.getColumns()) / layout.getColumns(),
                  roundUp(k, layout.getKBlock()) / layout.getDepth(), layout.getColumns(),
                  layout.getDepth()});
    return RankedTensorType::get(shape, tensor.getElementType());
  });
  auto cast = [](OpBuilder &builder, Type type, ValueRange inputs, Location loc) -> Value {
    return UnrealizedConversionCastOp::create(builder, loc, type, inputs).getResult(0);
  };
  addSourceMaterialization(cast);
  addTargetMaterialization(cast);
}

exec::CostAttr LaunchCost::attribute(MLIRContext *context) const {
  auto cost =
      exec::CostAttr::get(context, weightBytes, rowWeightBytes, expertBytes, experts, rowExperts,
                          rowCacheBytes, positionCacheBytes, rowFlops, pairFlops, window);
  return cost == exec::CostAttr::get(context, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) ? exec::CostAttr()
                                                                            : cost;
}

int64_t mica::cpu::sizeInBytes(ValueRange tensors) {
  int64_t bytes = 0;
  for (Value tensor : tensors) {
    if (tensor)
      bytes += getStoredBytes(cast<RankedTensorType>(tensor.getType()));
  }
  return bytes;
}

int64_t mica::cpu::bytesPerPosition(KvCacheType cache) {
  return cache.getBytesPerPosition() / cache.getLayers();
}

LogicalResult mica::cpu::checkProduct(Operation *op, Value x, Value weight) {
  if (!isPacked(weight))
    return op->emitOpError("multiplies by a weight without a packed layout");
  auto type = cast<RankedTensorType>(weight.getType());
  auto layout = cast<PackedLayoutAttr>(type.getEncoding());
  bool quantized = isQuantized(type.getElementType());
  int64_t bits = quantized ? 8 : type.getElementTypeBitWidth(), depth = 32 / bits;
  if (layout.getColumns() != kBlockColumns || layout.getDepth() != depth ||
      layout.getKBlock() % (16 * depth) != 0)
    return op->emitOpError("multiplies by a weight in another layout than kernels read: columns = ")
           << kBlockColumns << ", depth = " << depth << ", k_block a multiple of " << 16 * depth;
  Type ofRows = getElementTypeOrSelf(x);
  if (isQuantized(ofRows) && !quantized)
    return op->emitOpError("multiplies rows of ")
           << ofRows << " by a weight of " << type.getElementType()
           << ", expected one of !mica.block";
  return success();
}

SmallVector<Value> Launcher::operator()(StringRef base, ArrayAttr identity, Value tasks,
                                        ValueRange inputs, ValueRange outputs,
                                        KernelLibrary::Build build, const LaunchCost &cost) {
  SmallVector<Type> types;
  for (ValueRange values : {inputs, outputs})
    for (Value value : values) {
      auto tensor = dyn_cast<RankedTensorType>(value.getType());
      types.push_back(tensor ? Type(kernelBufferType(tensor)) : value.getType());
    }
  MLIRContext *context = rewriter.getContext();
  func::FuncOp kernel = kernels.getOrCreate(exec::KernelAttr::get(context, base, identity), types,
                                            loc, build, cost.attribute(context));
  auto op = exec::LaunchOp::create(rewriter, loc, outputs.getTypes(),
                                   FlatSymbolRefAttr::get(kernel.getSymNameAttr()), tasks, inputs,
                                   outputs);
  return SmallVector<Value>(op.getResults());
}

Value Launcher::overRows(StringRef base, ArrayAttr identity, ValueRange inputs, Type type,
                         KernelLibrary::Build build, const LaunchCost &cost) {
  Value rows = rowsOf(inputs.front());
  return (*this)(base, identity, rows, inputs, empty(type, rows), build, cost)[0];
}

Value Launcher::rowsOf(Value tensor) { return tensor::DimOp::create(rewriter, loc, tensor, 0); }
Value Launcher::constant(int64_t value) {
  return arith::ConstantIndexOp::create(rewriter, loc, value);
}

Value Launcher::empty(Type type, Value rows) {
  auto tensor = cast<RankedTensorType>(type);
  if (RankedTensorType bytes = bytesOf(tensor))
    tensor = bytes;
  SmallVector<Value> extents(tensor.getNumDynamicDims(), rows);
  return tensor::EmptyOp::create(rewriter, loc, tensor, extents);
}

namespace {

struct LowerToExecPass : mica::cpu::impl::LowerToExecBase<LowerToExecPass> {
  using LowerToExecBase::LowerToExecBase;

  void runOnOperation() override {
    if (failed(addEntryArguments()) || failed(convert()) || failed(removeReads()))
      return signalPassFailure();
    keepCarriedRowsInPlace();
    storeLogits();
  }

private:
  /// Entry functions take the weights, scratch memory and the place for the logits after the
  /// caches.
  LogicalResult addEntryArguments() {
    Builder builder(&getContext());
    auto bytes = MemRefType::get(ShapedType::kDynamic, builder.getI8Type());
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!isEntry(function))
        continue;
      EntrySignature signature(function);
      std::optional<unsigned> result = signature.result(EntryRole::Logits);
      auto logits = result ? dyn_cast<RankedTensorType>(function.getResultTypes()[*result])
                           : RankedTensorType();
      if (!logits)
        return function.emitOpError("@")
               << function.getSymName() << " has no result with " << kEntryRoleAttr
               << " = \"logits\": this is not stage `kernels`, from which this pass starts";
      // Logits are f32; a function that is looked at alone may end with rows of integers.
      logits = cast<RankedTensorType>(PhysicalTypeConverter().convertType(logits));
      std::pair<EntryRole, Type> added[kEntryArguments] = {
          {EntryRole::Weights, bytes},
          {EntryRole::Scratch, bytes},
          {EntryRole::Logits, MemRefType::get(logits.getShape(), logits.getElementType())}};
      for (auto [role, type] : added) {
        unsigned last = function.getNumArguments();
        (void)function.insertArgument(last, type, {}, function.getLoc());
        signature.setArgumentRole(last, role);
      }
    }
    return success();
  }

  LogicalResult convert() {
    MLIRContext *context = &getContext();
    PhysicalTypeConverter converter;
    KernelLibrary kernels(getOperation(), targetOf(getOperation()));
    RewritePatternSet patterns(context);
    populateRowPatterns(patterns, converter, kernels);
    populateProductPatterns(patterns, converter, kernels);
    populateAttentionPatterns(patterns, converter, kernels);
    populateMoePatterns(patterns, converter, kernels);
    populateStatePatterns(patterns, converter, kernels);
    populateWeightPatterns(patterns, converter, kernels);
    populateFunctionOpInterfaceTypeConversionPattern<func::FuncOp>(patterns, converter);
    populateCallOpTypeConversionPattern(patterns, converter);
    populateReturnOpTypeConversionPattern(patterns, converter);
    ConversionTarget target(*context);
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    // Symbols stay for the packer; reads of states vanish with the attention that looks through
    // them.
    target.addDynamicallyLegalDialect<MicaDialect>(llvm::IsaPred<WeightOp, EqualizeOp, ReadsState>);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addDynamicallyLegalOp<func::FuncOp>(
        [&](func::FuncOp op) { return converter.isSignatureLegal(op.getFunctionType()); });
    target.addDynamicallyLegalOp<func::CallOp, func::ReturnOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }

  /// Attention has been lowered to a kernel that reads the cache itself.
  LogicalResult removeReads() {
    WalkResult result = getOperation().walk([](ReadsState op) -> WalkResult {
      if (!op->use_empty())
        return op->emitOpError("is used by something other than mica.attention, and a copy of a "
                               "cache is never made: leave keys and values to attention");
      Value cache = op.getState();
      op->erase();
      if (auto cast = cache.getDefiningOp<UnrealizedConversionCastOp>(); cast && cast->use_empty())
        cast->erase();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// The initial value of the loops that return `value`.
  static Value firstOf(Value value) {
    while (auto loop = value.getDefiningOp<scf::ForOp>())
      value = loop.getInitArgs()[cast<OpResult>(value).getResultNumber()];
    return value;
  }

  /// yield %rows => yield (%rows copied into the buffer that the loop carries). The buffers of a
  /// loop are fixed, but a layer need not write its result over its input. Where it does, the copy
  /// is one of a buffer to itself and vanishes. Caches, whose first extent is the number of layers,
  /// are never copied: there the same shape is an error.
  void keepCarriedRowsInPlace() {
    getOperation().walk([](scf::ForOp loop) {
      auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
      OpBuilder builder(yield);
      for (auto [carried, next] :
           llvm::zip_equal(loop.getRegionIterArgs(), yield.getResultsMutable()))
        if (auto rows = dyn_cast<RankedTensorType>(carried.getType());
            rows && rows.isDynamicDim(0) && firstOf(next.get()) != carried)
          next.set(bufferization::MaterializeInDestinationOp::create(builder, yield.getLoc(), rows,
                                                                     next.get(), carried)
                       .getResult());
    });
  }

  /// return %logits, %caches... => the logits stored into their argument, the caches returned
  void storeLogits() {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!isEntry(function))
        continue;
      auto ret = cast<func::ReturnOp>(function.getBody().front().getTerminator());
      OpBuilder builder(ret);
      EntrySignature signature(function);
      unsigned result = *signature.result(EntryRole::Logits);
      Value target = signature.argument(EntryRole::Logits);
      bufferization::MaterializeInDestinationOp::create(
          builder, ret.getLoc(), Type(), ret.getOperand(result), target, /*restrict=*/true,
          /*writable=*/true);
      ret->eraseOperand(result);
      (void)function.eraseResult(result);
    }
  }
};

} // namespace
