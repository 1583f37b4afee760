//===- AssignPromptRows.cpp - the activation type of prompts ------------------===//

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
static Type elementFor(PromptRows rows, MLIRContext *context) {
  switch (rows) {
  case PromptRows::BF16:
    return BFloat16Type::get(context);
  case PromptRows::F32:
    return Float32Type::get(context);
  case PromptRows::Int8:
    return IntRowsType::get(context, /*limbs=*/1, IntegerRowLayout::group);
  }
  llvm_unreachable("all types of rows are handled above");
}

namespace {
struct AssignPromptRows : mica::impl::AssignPromptRowsBase<AssignPromptRows> {
  using AssignPromptRowsBase::AssignPromptRowsBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (roleOf(function) == kPromptRole)
        convert(function);
  }

private:
  void convert(func::FuncOp function) {
    Type element = elementFor(rows, &getContext());
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
