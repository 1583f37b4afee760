//===- InsertProbes.cpp - every op shows its result -----------------------===//

#include "ir/Mica/Names.h"
#include "passes/Passes.h"
#include "passes/support/Weights.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace mica {
#define GEN_PASS_DEF_INSERTPROBES
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// Rows of numbers that are computed, and the choices of a gate: no weights, whose shapes are
/// static, no tables, no views of caches, and no other forms of what is shown already.
static bool isShown(OpResult result) {
  Operation *op = result.getOwner();
  if (isa<CastOp, SplitHeadsOp, MergeHeadsOp, RopeTableOp, ProbeOp>(op) ||
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

/// The argument of a layer's function that says which layer of the model it is, which comes before
/// indices in caches; null in others.
static Value layerOf(func::FuncOp function) {
  auto index = llvm::find_if(function.getArguments(),
                             [](BlockArgument argument) { return argument.getType().isIndex(); });
  return index == function.getArguments().end() ? Value() : Value(*index);
}

/// "linear o_proj (2)" where a probe has that name already.
static std::string numbered(std::string name, llvm::StringMap<int> &counts) {
  int number = ++counts[name];
  return number > 1 ? name + " (" + std::to_string(number) + ")" : name;
}

namespace {
struct InsertProbes : mica::impl::InsertProbesBase<InsertProbes> {
  using InsertProbesBase::InsertProbesBase;

  void runOnOperation() override {
    // Layers first: the final norm may be called what one in a layer is.
    llvm::StringMap<int> ofLayers;
    SmallVector<func::FuncOp> others;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isExternal())
        continue;
      if (of != Probed::Results)
        showProductRows(function);
      else if (layerOf(function))
        for (const auto &name : showResults(function, {}))
          ofLayers[name.first()] = std::max(ofLayers[name.first()], name.second);
      else
        others.push_back(function);
    }
    for (func::FuncOp function : others)
      showResults(function, ofLayers);
  }

  /// All products of the same rows then multiply what one probe has shown.
  static void showProductRows(func::FuncOp function) {
    llvm::MapVector<Value, Operation *> products;
    function.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (Value rows = multipliedRows(operand); rows && isRows(rows.getType()))
          products.insert({rows, op});
    });
    llvm::StringMap<int> counts;
    for (auto [rows, op] : products) {
      OpBuilder builder(function.getContext());
      builder.setInsertionPointAfterValue(rows);
      auto probe = ProbeOp::create(builder, op->getLoc(), rows.getType(), rows,
                                   numbered("rows of " + nameOf(op), counts), layerOf(function));
      rows.replaceUsesWithIf(probe.getResult(), [](OpOperand &use) {
        return llvm::any_of(use.getOwner()->getOpOperands(),
                            [&](OpOperand &weight) { return multipliedRows(weight) == use.get(); });
      });
    }
  }

  static bool isRows(Type type) {
    auto rows = dyn_cast<RankedTensorType>(type);
    return rows && rows.getRank() == 2 && rows.getElementType().isFloat();
  }

  /// Numbers names on from `counts`. Returns the counts with those of this function.
  static llvm::StringMap<int> showResults(func::FuncOp function, llvm::StringMap<int> counts) {
    Value layer = layerOf(function);
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      for (OpResult result : op->getResults()) {
        // What is quantized is counted as well, so that names do not depend on the precision.
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (!type || (!isShown(result) && !isQuantized(type.getElementType())) || isa<CastOp>(op))
          continue;
        std::string name = nameOf(op);
        if (type.getElementType().isInteger(32))
          name += " choices";
        name = numbered(name, counts);
        if (!isShown(result))
          continue;
        OpBuilder builder(op->getContext());
        builder.setInsertionPointAfter(op);
        auto probe = ProbeOp::create(builder, op->getLoc(), result.getType(), result, name, layer);
        result.replaceAllUsesExcept(probe.getResult(), probe);
      }
    return counts;
  }
};
} // namespace
