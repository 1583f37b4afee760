//===- CheckLlvm.cpp - verify stage llvm ----------------------------------===//

#include "backends/cpu/codegen/ModelSymbols.h"
#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/codegen/RuntimeSlots.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_CHECKLLVMPASS
#include "backends/cpu/codegen/Passes.h.inc"

} // namespace mica::cpu

namespace {

/// The ops that remain of functions which cpu-expand-math (isComputedByInstructions) does not
/// replace by polynomials.
bool becomesLibraryCall(Operation *op) {
  return isa<LLVM::ExpOp, LLVM::Exp2Op, LLVM::LogOp, LLVM::Log2Op, LLVM::Log10Op, LLVM::SinOp,
             LLVM::CosOp, LLVM::PowOp, LLVM::PowIOp, LLVM::FRemOp>(op);
}

struct CheckLlvm : mica::cpu::impl::CheckLlvmPassBase<CheckLlvm> {
  void runOnOperation() override {
    bool ok = true;
    getOperation().walk([&](Operation *op) { ok &= succeeded(check(op)); });
    if (!ok)
      signalPassFailure();
  }

  static LogicalResult check(Operation *op) {
    if (isa<ModuleOp>(op))
      return success();
    if (auto cast = dyn_cast<UnrealizedConversionCastOp>(op))
      return op->emitError() << "a value of type " << cast.getOperandTypes()
                             << " was not lowered to the LLVM dialect";
    if (!isa_and_nonnull<LLVM::LLVMDialect, x86vector::X86VectorDialect>(op->getDialect()))
      return op->emitError("was not lowered to the LLVM dialect");
    if (becomesLibraryCall(op))
      return op->emitError("would become a call of libm");
    if (auto call = dyn_cast<LLVM::CallOp>(op))
      return checkCall(call);
    return success();
  }

  static LogicalResult checkCall(LLVM::CallOp call) {
    std::optional<StringRef> callee = call.getCallee();
    if (!callee)
      return checkRuntimeCall(call);
    auto function =
        SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(call, call.getCalleeAttr());
    if (function && function.isExternal() &&
        !llvm::is_contained(mica::cpu::kLibrarySymbols, *callee))
      return call.emitError() << "calls @" << *callee << ", which no program has";
    return success();
  }

  /// Indirect calls must call runtime functions that are loaded from the runtime table.
  static LogicalResult checkRuntimeCall(LLVM::CallOp call) {
    std::optional<int32_t> word = findWord(call.getCalleeOperands().front());
    LLVM::LLVMFunctionType type = call.getCalleeFunctionType();
    for (const mica::cpu::RuntimeSlot &slot : mica::cpu::getRuntimeSlots(call.getContext())) {
      if (slot.word != word)
        continue;
      if (slot.type == type)
        return success();
      return call.emitError() << "calls the runtime's " << slot.name << " as " << type
                              << ", but it is " << slot.type;
    }
    return call.emitError("calls a pointer that is not one of the runtime's functions");
  }

  /// The index of the 8-byte word that `pointer` was loaded from, or nullopt.
  static std::optional<int32_t> findWord(Value pointer) {
    auto load = pointer.getDefiningOp<LLVM::LoadOp>();
    auto place = load ? load.getAddr().getDefiningOp<LLVM::GEPOp>() : nullptr;
    if (!place || !isa<LLVM::LLVMPointerType>(place.getElemType()) ||
        place.getRawConstantIndices().size() != 1)
      return std::nullopt;
    return place.getRawConstantIndices().front();
  }
};

} // namespace
