//===- AssignLayouts.cpp - layouts and offsets ----------------------------===//

#include "backends/cpu/dispatch/Passes.h"
#include "backends/cpu/layout/LaneDepth.h"
#include "passes/support/CacheKinds.h"
#include "passes/support/Weights.h"

namespace mica::cpu {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "backends/cpu/dispatch/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Weights are aligned to cache lines, which are also the size of a vector. Large weights are
/// aligned to pages, because kernels that interleave reads of several pages (`prefetch-pages`)
/// count pages from the beginning of a weight. A large weight has at least 16 pages.
static constexpr int64_t kLine = 64, kPage = 4096, kLarge = 16 * kPage;

static int64_t alignmentOf(WeightOp weight) {
  return getStoredBytes(weight.getTensorType()) < kLarge ? kLine : kPage;
}

/// Positions per block of a cache: a few vectors of scores.
static constexpr int64_t kPositionBlock = 64;

/// oneDNN's BA16a64b for f32, BA16a64b2a for bf16, BA16a64b4a for integers: 16 groups of `depth`
/// elements along K, 64 columns.
static PackedLayoutAttr getPackedLayout(RankedTensorType type) {
  constexpr int64_t groups = 16;
  int64_t depth = laneDepth(type.getElementType());
  return PackedLayoutAttr::get(type.getContext(), kBlockColumns, depth, groups * depth);
}

/// Block-quantized weights only have a packed layout, so tables of them are packed as well.
static bool isPacked(OpOperand &operand) {
  WeightUse use = classifyWeightUse(operand);
  return use == WeightUse::Product || use == WeightUse::Router ||
         (use == WeightUse::Table &&
          isQuantized(cast<RankedTensorType>(operand.get().getType()).getElementType()));
}

namespace {
struct AssignLayouts : mica::cpu::impl::AssignLayoutsBase<AssignLayouts> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    // Later passes, such as mica-roll-layers, rely on existing offsets.
    for (auto weight : module.getOps<WeightOp>())
      if (weight.getOffset()) {
        weight.emitOpError("has an offset already: layouts are assigned once");
        return signalPassFailure();
      }
    if (failed(assignPackedLayouts()))
      return signalPassFailure();
    assignOffsets();
    CacheKinds kinds(module);
    if (failed(kinds.infer(module)))
      return signalPassFailure();
    convertStates(module, [&](SequenceState state, Value value) {
      return state.withLayout(kinds.get(value), kPositionBlock, laneDepth(state.getElementType()));
    });
  }

private:
  /// Sets the packed layout as the encoding of the type of a weight and of all values that hold it.
  LogicalResult assignPackedLayouts() {
    WeightProperty layouts(getOperation(), "layout");
    WalkResult result = getOperation().walk([&](Operation *op) -> WalkResult {
      for (OpOperand &operand : op->getOpOperands())
        if (isPacked(operand) &&
            failed(layouts.require(operand.get(),
                                   getPackedLayout(cast<RankedTensorType>(operand.get().getType())),
                                   op)))
          return WalkResult::interrupt();
      return WalkResult::advance();
    });
    layouts.apply([](RankedTensorType type, Attribute layout) {
      return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
    });
    return failure(result.wasInterrupted());
  }

  /// The weights in the order in which a step uses them, grouped by the op that uses them, such as
  /// the call of a layer function.
  SmallVector<SmallVector<WeightOp>> groupsInOrder() {
    SymbolTable symbols(getOperation());
    DenseSet<Operation *> seen;
    SmallVector<SmallVector<WeightOp>> groups;
    auto take = [&](WeightOp weight) {
      if (seen.insert(weight).second)
        groups.back().push_back(weight);
    };
    for (auto function : getOperation().getOps<func::FuncOp>())
      function.walk([&](Operation *op) {
        groups.emplace_back();
        for (Value operand : op->getOperands())
          if (WeightOp weight = lookupWeight(operand, symbols))
            take(weight);
      });
    groups.emplace_back();
    llvm::for_each(getOperation().getOps<WeightOp>(), take);
    return groups;
  }

  /// Assigns the offsets. Groups with the same types have the same offsets relative to their
  /// beginning. Sorts the symbols by offset, so that the IR lists them in storage order.
  void assignOffsets() {
    Builder builder(&getContext());
    Block &body = *getOperation().getBody();
    Block::iterator place = body.begin();
    int64_t offset = 0;
    for (ArrayRef<WeightOp> group : groupsInOrder()) {
      for (WeightOp weight : group)
        offset = roundUp(offset, alignmentOf(weight));
      for (WeightOp weight : group) {
        offset = roundUp(offset, alignmentOf(weight));
        int64_t bytes = getStoredBytes(weight.getTensorType());
        weight.setOffsetAttr(builder.getI64IntegerAttr(offset));
        weight.setBytesAttr(builder.getI64IntegerAttr(bytes));
        offset += bytes;
        if (place == weight->getIterator())
          ++place;
        else
          weight->moveBefore(&body, place);
      }
    }
  }
};
} // namespace
