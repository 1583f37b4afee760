//===- LowerTiles.cpp - AMX tiles and the branches that carry them --------===//

#include "backends/cpu/codegen/Passes.h"

#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/AMX/Transforms.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace mica::cpu {
#define GEN_PASS_DEF_LOWERTILESPASS
#include "backends/cpu/codegen/Passes.h.inc"
} // namespace mica::cpu

namespace {

/// Upstream's conversion of branches does not support the tile type, and its conversion of vectors
/// does not handle branches: a loop that carries tiles needs both at once.
struct LowerTiles : mica::cpu::impl::LowerTilesPassBase<LowerTiles> {
  void runOnOperation() override {
    WalkResult tiles = getOperation().walk([](Operation *op) {
      return isa_and_nonnull<amx::AMXDialect>(op->getDialect()) ? WalkResult::interrupt()
                                                                : WalkResult::advance();
    });
    if (!tiles.wasInterrupted())
      return;
    LLVMTypeConverter converter(&getContext());
    RewritePatternSet patterns(&getContext());
    LLVMConversionTarget target(getContext());
    populateAMXLegalizeForLLVMExportPatterns(converter, patterns);
    configureAMXLegalizeForExportTarget(target);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    target.addIllegalDialect<cf::ControlFlowDialect>();
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
