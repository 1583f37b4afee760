//===- CheckLlvm.cpp - what may be left at stage llvm ---------------------===//

#include "backends/cpu/codegen/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_CHECKLLVMPASS
#include "backends/cpu/codegen/Passes.h.inc"

ArrayRef<StringRef> runtimeSymbols() {
  static constexpr StringRef symbols[] = {
      "mica_rt_parallel_for", "mica_rt_matmul", "mica_rt_probe", "memcpy", "memset", "memmove"};
  return symbols;
}
} // namespace mica::cpu

namespace {

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
    if (!isa_and_nonnull<LLVM::LLVMDialect>(op->getDialect()) &&
        !op->getName().getStringRef().starts_with("x86vector."))
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
      return success();
    auto function =
        SymbolTable::lookupNearestSymbolFrom<LLVM::LLVMFuncOp>(call, call.getCalleeAttr());
    if (function && function.isExternal() &&
        !llvm::is_contained(mica::cpu::runtimeSymbols(), *callee))
      return call.emitError() << "calls @" << *callee << ", which no program has";
    return success();
  }
};

} // namespace
