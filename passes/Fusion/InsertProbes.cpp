//===- InsertProbes.cpp - every op shows its result -----------------------------===//

#include "ir/Mica/Names.h"
#include "passes/Passes.h"
#include "passes/Support/Weights.h"

#include "llvm/ADT/StringMap.h"

namespace mica {
#define GEN_PASS_DEF_INSERTPROBES
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// Rows of numbers that are computed, and what a gate chooses: no tables, no views of caches, no
/// other forms of what is shown already.
static bool isShown(OpResult result) {
  Operation *op = result.getOwner();
  if (isa<CastOp, SplitHeadsOp, MergeHeadsOp, RopeTableOp, GetWeightOp, SelectWeightOp, ProbeOp>(
          op) ||
      !isa<MicaDialect>(op->getDialect()))
    return false;
  auto type = dyn_cast<RankedTensorType>(result.getType());
  return type && (type.getElementType().isFloat() || isa<MoeGateOp>(op)) && type.getRank() >= 2 &&
         type.getRank() <= 3 && type.isDynamicDim(0) && type.getNumDynamicDims() == 1;
}

/// The last word of what a weight is called; empty where it has no name.
static std::string wordOf(Value weight) {
  if (auto get = weight.getDefiningOp<GetWeightOp>())
    return shortName(get.getWeight());
  auto name = weight.getLoc()->findInstanceOf<NameLoc>();
  return name ? shortName(name.getName()) : std::string();
}

/// "linear o_proj": the op and its first matrix.
static std::string nameOf(Operation *op) {
  std::string name = op->getName().stripDialect().str();
  for (OpOperand &operand : op->getOpOperands()) {
    if (classifyWeightUse(operand) == WeightUse::None)
      continue;
    if (std::string word = wordOf(operand.get()); !word.empty())
      return name + " " + word;
  }
  return name;
}

namespace {
struct InsertProbes : mica::impl::InsertProbesBase<InsertProbes> {
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        insert(function);
  }

  static void insert(func::FuncOp function) {
    auto index = llvm::find_if(function.getArguments(),
                               [](BlockArgument argument) { return argument.getType().isIndex(); });
    Value layer = index == function.getArguments().end() ? Value() : Value(*index);
    llvm::StringMap<int> counts;
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      for (OpResult result : op->getResults()) {
        // What is quantised is counted as well, so that names do not depend on the precision.
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (!type || (!isShown(result) && !isQuantized(type.getElementType())) || isa<CastOp>(op))
          continue;
        std::string name = nameOf(op);
        if (type.getElementType().isInteger(32))
          name += " choices";
        if (int number = ++counts[name]; number > 1)
          name += " (" + std::to_string(number) + ")";
        if (!isShown(result))
          continue;
        OpBuilder builder(op->getContext());
        builder.setInsertionPointAfter(op);
        auto probe = ProbeOp::create(builder, op->getLoc(), result.getType(), result, name, layer);
        result.replaceAllUsesExcept(probe.getResult(), probe);
      }
  }
};
} // namespace
