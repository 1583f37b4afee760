//===- SelectKernels.cpp - kernel selection and attention tiling ----------===//

#include "backends/cpu/dispatch/Passes.h"
#include "backends/cpu/target/CpuDialect.h"
#include "passes/support/Phases.h"

namespace mica::cpu {
#define GEN_PASS_DEF_SELECTKERNELS
#include "backends/cpu/dispatch/Passes.h.inc"
} // namespace mica::cpu

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

namespace {
struct SelectKernels : mica::cpu::impl::SelectKernelsBase<SelectKernels> {
  using SelectKernelsBase::SelectKernelsBase;

  KernelKind choose(MultipliesRows product) {
    // A prompt has many rows, but usually only the last one has logits.
    if (product->hasTrait<ComputesLogits>())
      return KernelKind::Generated;
    auto weight = cast<RankedTensorType>(product.getMatrices().front().getType());
    Type element = weight.getElementType(),
         rows = getElementTypeOrSelf(product.getMultipliedRows().get());
    ProductShape shape{maxRows().value_or(largeBatch), weight.getDimSize(0), weight.getDimSize(1)};
    shape.blocks = isQuantized(element) && isQuantized(rows);
    shape.expands = isQuantized(element) && !shape.blocks;
    if (!shape.blocks)
      shape.weights = precisionOf(shape.expands ? rows : element);
    // A function without a limit is only called for more rows than the others handle.
    costs.gemmThreshold = maxRows() ? gemmThreshold : 0;
    return chooseKernel(shape, costs);
  }

  /// The maximum number of rows that the function is called for, or nullopt.
  std::optional<int64_t> maxRows() {
    auto rows = getOperation()->getAttrOfType<IntegerAttr>(kMaxRowsAttr);
    return rows ? std::optional(rows.getInt()) : std::nullopt;
  }

  AttentionTilingAttr chooseTilingOf(AttentionOp attention) {
    auto headsOf = [](Value value) { return cast<ShapedType>(value.getType()); };
    int64_t group =
        headsOf(attention.getQ()).getDimSize(1) / headsOf(attention.getK()).getDimSize(2);
    bool decodes =
        maxRows() && *maxRows() <= smallBatch && rowRoleOf(getOperation()) != kPromptRole;
    return chooseTiling({decodes, group}, &getContext());
  }

  void runOnOperation() override {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    FailureOr<int64_t> threshold = readRowsAttr(module, kGemmThresholdAttr, /*min=*/1,
                                                PhaseRows().gemmThreshold),
                       small =
                           readRowsAttr(module, kSmallBatchAttr, /*min=*/1, PhaseRows().smallBatch);
    if (failed(threshold) || failed(small))
      return signalPassFailure();
    costs = KernelCosts::of(targetOf(getOperation()));
    costs.minWork = minWork;
    gemmThreshold = *threshold;
    smallBatch = *small;
    // Choices that the IR already contains take precedence.
    getOperation().walk([&](Operation *op) {
      TypeSwitch<Operation *>(op)
          .Case([&](SelectsKernel product) {
            if (!product.getKernel())
              product.setKernel(choose(cast<MultipliesRows>(op)));
          })
          .Case([&](AttentionOp attention) {
            if (!attention.getTiling())
              attention.setTilingAttr(chooseTilingOf(attention));
          });
    });
  }

private:
  KernelCosts costs;         ///< for the module's target
  int64_t gemmThreshold = 0; ///< maximum number of rows for generated kernels
  int64_t smallBatch = 0;    ///< maximum number of rows of a decode function
};
} // namespace
