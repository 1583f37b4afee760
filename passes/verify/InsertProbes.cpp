//===- InsertProbes.cpp - insert a probe after every op -------------------===//

#include "ir/Mica/Names.h"
#include "passes/Passes.h"
#include "passes/support/Experts.h"
#include "passes/support/Weights.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mica {
#define GEN_PASS_DEF_INSERTPROBES
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

/// Whether a result is recorded: computed rows and the expert ids of a router, but not weights
/// (which have static shapes) or views of caches.
static bool isShown(OpResult result) {
  Operation *op = result.getOwner();
  if (op->hasTrait<NotProbed>() || !isa<MicaDialect>(op->getDialect()))
    return false;
  auto type = dyn_cast<RankedTensorType>(result.getType());
  return type && (type.getElementType().isFloat() || isa<RoutesRows>(op)) && type.getRank() >= 2 &&
         type.getRank() <= 3 && type.isDynamicDim(0) && type.getNumDynamicDims() == 1;
}

/// The last word of a weight's name; empty if it has none.
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

/// The argument of a layer function that is the index of the layer in the model: its only index, or
/// the one that is not an index of a state, because states number the layers that have them. Null
/// in other functions.
static Value layerOf(func::FuncOp function) {
  SmallVector<Value> indices =
      llvm::filter_to_vector(ValueRange(function.getArguments()),
                             [](Value argument) { return argument.getType().isIndex(); });
  if (indices.size() <= 1)
    return indices.empty() ? Value() : indices.front();
  DenseSet<Value> ofStates;
  function.walk([&](Operation *op) {
    if (auto update = dyn_cast<UpdatesState>(op))
      for (const StateUpdate &written : update.getStateUpdates())
        ofStates.insert(written.layer);
    else if (auto read = dyn_cast<ReadsState>(op))
      ofStates.insert(read.getLayer());
  });
  const auto *layer =
      llvm::find_if(indices, [&](Value index) { return !ofStates.contains(index); });
  return layer == indices.end() ? indices.front() : *layer;
}

/// "linear o_proj (2)" if another probe already has the name.
static std::string numbered(std::string name, llvm::StringMap<int> &counts) {
  int number = ++counts[name];
  return number > 1 ? name + " (" + std::to_string(number) + ")" : name;
}

namespace {
struct InsertProbes : mica::impl::InsertProbesBase<InsertProbes> {
  using InsertProbesBase::InsertProbesBase;

  void runOnOperation() override {
    // Layers first: the final norm may have the same name as a norm in a layer.
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

  /// The inner activations of experts become a value.
  static void exposeInnerRows(func::FuncOp function) {
    SmallVector<MoeExpertsOp> experts;
    function.walk([&](MoeExpertsOp op) { experts.push_back(op); });
    for (MoeExpertsOp op : experts) {
      Type element = op.getX().getType().getElementType();
      splitExperts(op, element.isFloat() ? element : Float32Type::get(op.getContext()));
    }
  }

  /// All matmuls of the same rows use the result of one probe.
  static void showProductRows(func::FuncOp function) {
    exposeInnerRows(function);
    llvm::MapVector<Value, Operation *> products;
    function.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        if (Value rows = multipliedRows(operand); rows && isRecorded(op, rows.getType()))
          products.insert({rows, op});
    });
    llvm::StringMap<int> counts;
    Value layer = layerOf(function);
    for (auto [rows, op] : products) {
      OpBuilder builder(function.getContext());
      builder.setInsertionPointAfterValue(rows);
      std::string name = numbered("rows of " + nameOf(op), counts);
      if (auto down = dyn_cast<MoeDownOp>(op)) {
        auto experts = ProbeOp::create(builder, op->getLoc(), down.getExperts().getType(),
                                       down.getExperts(), name + " choices", layer);
        down.getExpertsMutable().assign(experts.getResult());
      }
      auto probe = ProbeOp::create(builder, op->getLoc(), rows.getType(), rows, name, layer);
      rows.replaceUsesWithIf(probe.getResult(), [](OpOperand &use) {
        return llvm::any_of(use.getOwner()->getOpOperands(),
                            [&](OpOperand &weight) { return multipliedRows(weight) == use.get(); });
      });
    }
  }

  /// Whether the rows that `op` multiplies are recorded: float rows [T, C], and those of experts
  /// [T, k, C].
  static bool isRecorded(Operation *op, Type type) {
    auto rows = dyn_cast<RankedTensorType>(type);
    return rows && rows.getRank() == (isa<MoeDownOp>(op) ? 3 : 2) &&
           rows.getElementType().isFloat();
  }

  /// Continues numbering from `counts`; returns the counts including this function's.
  static llvm::StringMap<int> showResults(func::FuncOp function, llvm::StringMap<int> counts) {
    Value layer = layerOf(function);
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops)
      for (OpResult result : op->getResults()) {
        // Quantized results are counted as well, so that names do not depend on the precision.
        auto type = dyn_cast<RankedTensorType>(result.getType());
        if (!type || (!isShown(result) && !isQuantized(type.getElementType())) ||
            op->hasTrait<NotProbed>())
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
