//===- SpecializePhases.cpp - few rows, several, many ---------------------------===//

#include "passes/Kernels/Phases.h"
#include "passes/Passes.h"

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
    // Behind stage `loops` its functions are others, but the module still says where it was cut.
    auto isCopy = [](func::FuncOp function) { return function->hasAttr(kMaxRowsAttr); };
    if (functions.empty() ? module->hasAttr(kCrossingAttr) : llvm::any_of(functions, isCopy)) {
      module.emitError("has been specialized for few and many rows already");
      return signalPassFailure();
    }
    FailureOr<int64_t> most = rowsStated(module, kCrossingAttr, /*least=*/1, crossing),
                       few = rowsStated(module, kFewRowsAttr, /*least=*/1, fewRows);
    if (failed(most) || failed(few))
      return signalPassFailure();
    if (*most < 1 || *few < 1) {
      module.emitError("the most rows of few and of several must be at least 1, got ")
          << *few << " and " << *most;
      return signalPassFailure();
    }
    *few = std::min(*few, *most);
    SymbolTable symbols(module);
    auto rowsAttr = [&](int64_t rows) {
      return Builder(module.getContext()).getI64IntegerAttr(rows);
    };
    auto cloneFor = [&](int64_t rows, StringRef suffix) {
      for (func::FuncOp clone : cloneWithSuffix(functions, suffix, symbols))
        clone->setAttr(kMaxRowsAttr, rowsAttr(rows));
    };
    cloneFor(*few, "_few");
    if (*few < *most)
      cloneFor(*most, "_several");
    cloneWithSuffix(functions, "_many", symbols);
    for (func::FuncOp function : functions)
      symbols.erase(function);
    module->setAttr(kFewRowsAttr, rowsAttr(*few));
    module->setAttr(kCrossingAttr, rowsAttr(*most));
  }
};
} // namespace
