//===- AssignPromptRows.cpp - the activation type of prompts --------------===//

#include "passes/Passes.h"
#include "passes/support/Calls.h"
#include "passes/support/Phases.h"

namespace mica {
#define GEN_PASS_DEF_ASSIGNPROMPTROWS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
struct AssignPromptRows : mica::impl::AssignPromptRowsBase<AssignPromptRows> {
  using AssignPromptRowsBase::AssignPromptRowsBase;
  explicit AssignPromptRows(ExactRowsOf exactRowsOf) : exactRowsOf(std::move(exactRowsOf)) {}

  void runOnOperation() override {
    FailureOr<PromptRows> rows = promptRowsOf(getOperation());
    if (failed(rows))
      return signalPassFailure();
    ExactRows chosen = exactRowsOf ? exactRowsOf(getOperation()) : ExactRows(exact);
    Type element = promptRowType(&getContext(), *rows, chosen);
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (rowRoleOf(function) == kPromptRole)
        convert(function, element);
  }

private:
  ExactRowsOf exactRowsOf;

  static void convert(func::FuncOp function, Type element) {
    auto convertValue = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (type && isQuantized(type.getElementType(), QuantizedUse::Rows))
        value.setType(type.clone(element));
    };
    function.walk([&](Block *block) { llvm::for_each(block->getArguments(), convertValue); });
    function.walk([&](Operation *op) { llvm::for_each(op->getResults(), convertValue); });
    // A cast that does not change the type is removed.
    function.walk([](CastOp cast) {
      if (cast.getX().getType() != cast.getType())
        return;
      cast.replaceAllUsesWith(cast.getX());
      cast.erase();
    });
    updateFunctionType(function);
  }
};
} // namespace

std::unique_ptr<Pass> mica::createAssignPromptRows(ExactRowsOf exactRowsOf) {
  return std::make_unique<AssignPromptRows>(std::move(exactRowsOf));
}
