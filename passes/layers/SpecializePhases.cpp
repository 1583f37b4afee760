//===- SpecializePhases.cpp - copies by number and role of rows -----------===//

#include "passes/Passes.h"
#include "passes/support/Phases.h"

namespace mica {
#define GEN_PASS_DEF_SPECIALIZEPHASES
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// Clones `functions` under names with `suffix`, calling each other; private and public ones alike.
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

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
    // After stage `loops` its functions are others, but the module still says where it was cut.
    auto isCopy = [](func::FuncOp function) {
      return function->hasAttr(kMaxRowsAttr) || function->hasAttr(kRowRoleAttr);
    };
    if (functions.empty() ? module->hasAttr(kGemmThresholdAttr) : llvm::any_of(functions, isCopy)) {
      module.emitError("has been specialized for few and many rows already");
      return signalPassFailure();
    }
    FailureOr<int64_t> most = readRowsAttr(module, kGemmThresholdAttr, /*least=*/1, gemmThreshold),
                       few = readRowsAttr(module, kFewRowsAttr, /*least=*/1, fewRows);
    if (failed(most) || failed(few))
      return signalPassFailure();
    if (*most < 1 || *few < 1) {
      module.emitError("the most rows of few and of several must be at least 1, got ")
          << *few << " and " << *most;
      return signalPassFailure();
    }
    *few = std::min(*few, *most);
    SymbolTable symbols(module);
    Builder builder(module.getContext());
    auto cloneFor = [&](std::optional<int64_t> rows, StringRef role, StringRef suffix) {
      std::string prefix = role.empty() ? "" : "_" + role.str();
      for (func::FuncOp clone : cloneWithSuffix(functions, prefix + suffix.str(), symbols)) {
        if (rows)
          clone->setAttr(kMaxRowsAttr, builder.getI64IntegerAttr(*rows));
        if (!role.empty())
          clone->setAttr(kRowRoleAttr, builder.getStringAttr(role));
      }
    };
    bool byRole = dependsOnRole(module);
    StringRef decode = byRole ? StringRef(kDecodeRole) : StringRef();
    cloneFor(*few, decode, "_few");
    if (*few < *most)
      cloneFor(*most, decode, "_several");
    cloneFor(std::nullopt, decode, "_many");
    if (byRole) {
      // Short prompts are rare and soon read: they need no attention that is cut for single rows.
      cloneFor(*most, kPromptRole, "_several");
      cloneFor(std::nullopt, kPromptRole, "_many");
    }
    for (func::FuncOp function : functions)
      symbols.erase(function);
    module->setAttr(kFewRowsAttr, builder.getI64IntegerAttr(*few));
    module->setAttr(kGemmThresholdAttr, builder.getI64IntegerAttr(*most));
  }
};
} // namespace
