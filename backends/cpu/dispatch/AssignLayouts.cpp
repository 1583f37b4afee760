//===- AssignLayouts.cpp - physical forms and places ----------------------===//

#include "backends/cpu/dispatch/LaneDepth.h"
#include "backends/cpu/dispatch/Passes.h"
#include "passes/support/CacheKinds.h"
#include "passes/support/Weights.h"

namespace mica::cpu {
#define GEN_PASS_DEF_ASSIGNLAYOUTS
#include "backends/cpu/dispatch/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Vectors of 64 bytes begin at whole cache lines. Weights that are large begin at whole pages as
/// well: kernels that read several pages in turn (`prefetch-pages`) count them from a weight's
/// beginning. Of a large one a page is at most a sixteenth.
static constexpr int64_t kLine = 64, kPage = 4096, kLarge = 16 * kPage;

static int64_t alignmentOf(WeightOp weight) {
  return getStoredBytes(weight.getTensorType()) < kLarge ? kLine : kPage;
}

/// Positions in a block of a cache: a few vectors of scores at once.
static constexpr int64_t kPositionBlock = 64;

/// Values that a dot-product instruction consumes together: a 32-bit lane of them. Integers of 4
/// bits are widened to 8 on the way.
static int64_t getDepth(Type element) { return isQuantized(element) ? 4 : laneDepth(element); }

/// BA16a64b of oneDNN for f32, BA16a64b2a for bf16, BA16a64b4a for integers: 16 groups of `depth`
/// along K, 64 columns.
static PackedLayoutAttr getPackedLayout(RankedTensorType type) {
  constexpr int64_t groups = 16;
  int64_t depth = getDepth(type.getElementType());
  return PackedLayoutAttr::get(type.getContext(), kBlockColumns, depth, groups * depth);
}

/// Quantized rows have one form only, so that tables of them are packed as well.
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
    // What follows relies on them, loops over layers among it.
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
      return state.withLayout(kinds.get(value), kPositionBlock, getDepth(state.getElementType()));
    });
  }

private:
  /// The encoding of the type, wherever the weight goes, says how it is packed.
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

  /// The weights in the order in which a step uses them, by the operation that does: of a layer the
  /// operands of its call, one after the other.
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

  /// Groups of the same types have the same layout relative to their beginning. The symbols are
  /// sorted by offset, so that the IR lists them in storage order.
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
