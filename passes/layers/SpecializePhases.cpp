//===- SpecializePhases.cpp - copies of functions by phase ----------------===//

#include "passes/Passes.h"
#include "passes/support/Phases.h"

namespace mica {
#define GEN_PASS_DEF_SPECIALIZEPHASES
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// Clones `functions` under names with `suffix`; the clones call each other. Keeps their
/// visibility.
static SmallVector<func::FuncOp> cloneWithSuffix(ArrayRef<func::FuncOp> functions, StringRef suffix,
                                                 SymbolTable &symbols) {
  llvm::StringMap<StringAttr> names;
  SmallVector<func::FuncOp> clones;
  for (func::FuncOp function : functions) {
    func::FuncOp clone = function.clone();
    clone.setSymName((function.getSymName() + suffix).str());
    names[function.getSymName()] = symbols.insert(clone);
    clones.push_back(clone);
  }
  for (func::FuncOp clone : clones)
    clone.walk([&](func::CallOp call) {
      call.setCalleeAttr(FlatSymbolRefAttr::get(names.lookup(call.getCallee())));
    });
  return clones;
}

namespace {
struct SpecializePhases : mica::impl::SpecializePhasesBase<SpecializePhases> {
  using SpecializePhasesBase::SpecializePhasesBase;
  SpecializePhases(const PhaseRows &rows, ExactRowsOf exactRowsOf)
      : SpecializePhasesBase({rows.gemmThreshold, rows.smallBatch, ExactRows::BF16}),
        exactRowsOf(std::move(exactRowsOf)) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<PromptRows> promptRows = promptRowsOf(module);
    if (failed(promptRows))
      return signalPassFailure();
    auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
    // Stage `loops` replaces the functions, but the module keeps the attribute.
    auto isCopy = [](func::FuncOp function) {
      return function->hasAttr(kMaxRowsAttr) ||
             (function->hasAttr(kRowRoleAttr) && rowRoleOf(function) != kDraftRole);
    };
    if (functions.empty() ? module->hasAttr(kGemmThresholdAttr) : llvm::any_of(functions, isCopy)) {
      module.emitError("functions are specialized already");
      return signalPassFailure();
    }
    FailureOr<int64_t> threshold =
                           readRowsAttr(module, kGemmThresholdAttr, /*min=*/1, gemmThreshold),
                       small = readRowsAttr(module, kSmallBatchAttr, /*min=*/1, smallBatch);
    if (failed(threshold) || failed(small))
      return signalPassFailure();
    if (*threshold < 1 || *small < 1) {
      module.emitError("small-batch and gemm-threshold must be at least 1, got ")
          << *small << " and " << *threshold;
      return signalPassFailure();
    }
    *small = std::min(*small, *threshold);
    SymbolTable symbols(module);
    Builder builder(module.getContext());
    // The functions of a multi-token prediction head have their role already.
    SmallVector<func::FuncOp> ofModel, ofHead;
    for (func::FuncOp function : functions)
      (rowRoleOf(function) == kDraftRole ? ofHead : ofModel).push_back(function);
    auto cloneFor = [&](std::optional<int64_t> rows, StringRef role, StringRef suffix) {
      bool isHead = role == kDraftRole;
      std::string prefix = role.empty() || isHead ? "" : "_" + role.str();
      ArrayRef<func::FuncOp> cloned = isHead ? ofHead : ofModel;
      for (func::FuncOp clone : cloneWithSuffix(cloned, prefix + suffix.str(), symbols)) {
        if (rows)
          clone->setAttr(kMaxRowsAttr, builder.getI64IntegerAttr(*rows));
        if (!role.empty())
          clone->setAttr(kRowRoleAttr, builder.getStringAttr(role));
      }
    };
    auto cloneForAllSizes = [&](StringRef role) {
      cloneFor(*small, role, "_small");
      if (*small < *threshold)
        cloneFor(*threshold, role, "_medium");
      cloneFor(std::nullopt, role, "_large");
    };
    ExactRows chosen = exactRowsOf ? exactRowsOf(module) : ExactRows(exact);
    bool byRole = dependsOnRole(module, promptRowType(&getContext(), *promptRows, chosen));
    cloneForAllSizes(byRole ? StringRef(kDecodeRole) : StringRef());
    if (byRole) {
      // Short prompts are rare and fast, so they do not need attention that is split into single
      // rows.
      cloneFor(*threshold, kPromptRole, "_medium");
      cloneFor(std::nullopt, kPromptRole, "_large");
    }
    if (!ofHead.empty())
      cloneForAllSizes(kDraftRole);
    for (func::FuncOp function : functions)
      symbols.erase(function);
    module->setAttr(kSmallBatchAttr, builder.getI64IntegerAttr(*small));
    module->setAttr(kGemmThresholdAttr, builder.getI64IntegerAttr(*threshold));
  }

private:
  ExactRowsOf exactRowsOf;
};
} // namespace

std::unique_ptr<Pass> mica::createSpecializePhases(const PhaseRows &rows, ExactRowsOf exactRowsOf) {
  return std::make_unique<SpecializePhases>(rows, std::move(exactRowsOf));
}
