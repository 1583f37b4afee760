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

/// The element type that rows of !mica.int_rows have instead, in prompts.
static Type elementFor(PromptRows rows, ExactRows exact, MLIRContext *context) {
  if (rows == PromptRows::Int8)
    return IntRowsType::get(context, /*limbs=*/1, IntegerRowLayout::group);
  switch (exact) {
  case ExactRows::F32:
    return Float32Type::get(context);
  case ExactRows::BF16:
    return BFloat16Type::get(context);
  case ExactRows::Int16:
    return defaultIntRows(context);
  }
  llvm_unreachable("all exact rows are handled above");
}

namespace {
struct AssignPromptRows : mica::impl::AssignPromptRowsBase<AssignPromptRows> {
  using AssignPromptRowsBase::AssignPromptRowsBase;

  void runOnOperation() override {
    FailureOr<PromptRows> rows = promptRowsOf(getOperation());
    if (failed(rows))
      return signalPassFailure();
    Type element = elementFor(*rows, exact, &getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (rowRoleOf(function) == kPromptRole)
        convert(function, element);
  }

private:
  static void convert(func::FuncOp function, Type element) {
    auto convertValue = [&](Value value) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (type && isa<IntRowsType>(type.getElementType()))
        value.setType(type.clone(element));
    };
    function.walk([&](Block *block) { llvm::for_each(block->getArguments(), convertValue); });
    function.walk([&](Operation *op) { llvm::for_each(op->getResults(), convertValue); });
    // A cast that rounds nothing is none.
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
