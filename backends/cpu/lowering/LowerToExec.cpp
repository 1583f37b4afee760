//===- LowerToExec.cpp - mica ops to launches and oneDNN matmuls ----------===//

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
  /// Adds the arguments for weights, scratch memory and logits after the others of each entry
  /// function.
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
      // Usually f32; a function in a test may return quantized rows.
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
    // Symbols are kept for the packer; reads of states are removed later.
    target.addDynamicallyLegalDialect<MicaDialect>(llvm::IsaPred<WeightOp, EqualizeOp, ReadsState>);
    target.markUnknownOpDynamicallyLegal([](Operation *) { return true; });
    target.addDynamicallyLegalOp<func::FuncOp>(
        [&](func::FuncOp op) { return converter.isSignatureLegal(op.getFunctionType()); });
    target.addDynamicallyLegalOp<func::CallOp, func::ReturnOp>(
        [&](Operation *op) { return converter.isLegal(op); });
    return applyPartialConversion(getOperation(), target, std::move(patterns));
  }

  /// Removes reads of states: attention has been lowered to a kernel that reads the cache itself.
  LogicalResult removeReads() {
    WalkResult result = getOperation().walk([](ReadsState op) -> WalkResult {
      if (!op->use_empty())
        return op->emitOpError("is used by something other than mica.attention, and caches are "
                               "never copied: pass keys and values to attention only");
      Value cache = op.getState();
      op->erase();
      if (auto cast = cache.getDefiningOp<UnrealizedConversionCastOp>(); cast && cast->use_empty())
        cast->erase();
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  /// The initial value of `value` before all loops that it is a result of.
  static Value firstOf(Value value) {
    while (auto loop = value.getDefiningOp<scf::ForOp>())
      value = loop.getInitArgs()[cast<OpResult>(value).getResultNumber()];
    return value;
  }

  /// yield %rows => yield (%rows copied into the buffer that the loop carries). A loop carries the
  /// same buffer in all iterations, but a layer may write its result to another one. If it does
  /// not, the copy has the same source and target and is removed. Caches, whose first extent is the
  /// (static) number of layers, are never copied: a different buffer is an error.
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

  /// the logits stored => return %logits, %caches..., %hidden => the logits are stored in their
  /// argument, hidden rows in theirs, which is returned after the caches
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
      if (std::optional<unsigned> hidden = signature.result(EntryRole::Hidden)) {
        Value place = signature.hidden();
        ret.setOperand(*hidden,
                       bufferization::MaterializeInDestinationOp::create(
                           builder, ret.getLoc(), place.getType(), ret.getOperand(*hidden), place)
                           .getResult());
      }
      ret->eraseOperand(result);
      (void)function.eraseResult(result);
    }
  }
};

} // namespace
