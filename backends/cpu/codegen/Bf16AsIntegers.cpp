//===- Bf16AsIntegers.cpp - bf16 values as 16-bit integers ----------------===//

#include "backends/cpu/codegen/Passes.h"
#include "backends/cpu/target/CpuDialect.h"
#include "ir/Mica/Mica.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_BF16ASINTEGERSPASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

struct Bf16AsIntegers : mica::cpu::impl::Bf16AsIntegersPassBase<Bf16AsIntegers> {
  void runOnOperation() override {
    if (mica::cpu::targetOf(getOperation()).bf16Dot)
      return;
    WalkResult result = getOperation()->walk([](Operation *op) -> WalkResult {
      auto interrupt = [](BFloat16Type) { return WalkResult::interrupt(); };
      if (isa_and_nonnull<mica::MicaDialect>(op->getDialect()) &&
          op->getAttrDictionary().walk(interrupt).wasInterrupted())
        return op->emitOpError("has bf16: lower it to stage `llvm` before this pass");
      if (!isa<LLVM::FCmpOp, LLVM::FPExtOp, LLVM::FPTruncOp, LLVM::FAddOp, LLVM::FSubOp,
               LLVM::FMulOp, LLVM::FDivOp, LLVM::FNegOp>(op))
        return WalkResult::advance();
      auto isBf16 = [](Type type) { return getElementTypeOrSelf(type).isBF16(); };
      if (llvm::any_of(op->getOperandTypes(), isBf16) || llvm::any_of(op->getResultTypes(), isBf16))
        return op->emitError("computes with bf16 in a way that this target does not support");
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return signalPassFailure();
    replacer().recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                            /*replaceLocs=*/false, /*replaceTypes=*/true);
  }

  AttrTypeReplacer replacer() {
    auto i16 = IntegerType::get(&getContext(), 16);
    AttrTypeReplacer replacer;
    replacer.addReplacement([i16](BFloat16Type) -> Type { return i16; });
    replacer.addReplacement(
        [i16](FloatAttr value) -> std::optional<std::pair<Attribute, WalkResult>> {
          if (!value.getType().isBF16())
            return std::nullopt;
          return std::pair(Attribute(IntegerAttr::get(i16, value.getValue().bitcastToAPInt())),
                           WalkResult::skip());
        });
    replacer.addReplacement(
        [i16](DenseFPElementsAttr values) -> std::optional<std::pair<Attribute, WalkResult>> {
          if (!values.getElementType().isBF16())
            return std::nullopt;
          return std::pair(Attribute(values.bitcast(i16)), WalkResult::skip());
        });
    return replacer;
  }
};

} // namespace
