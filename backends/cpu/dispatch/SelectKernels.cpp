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
    // A prompt has many rows, but mostly one of them, its last, is multiplied with the vocabulary.
    if (isa<LmHeadOp>(product))
      return KernelKind::Generated;
    auto weight = cast<RankedTensorType>(product.getMatrices().front().getType());
    Type element = weight.getElementType(),
         rows = getElementTypeOrSelf(product.getMultipliedRows().get());
    ProductShape shape{maxRows().value_or(manyRows), weight.getDimSize(0), weight.getDimSize(1)};
    shape.blocks = isQuantized(element) && isQuantized(rows);
    shape.expands = isQuantized(element) && !shape.blocks;
    if (!shape.blocks)
      shape.weights = precisionOf(shape.expands ? rows : element);
    // A function for any number of rows is called for more than others take.
    costs.gemmThreshold = maxRows() ? gemmThreshold : 0;
    return chooseKernel(shape, costs);
  }

  /// The most rows that the function is called for; nothing where it takes any number.
  std::optional<int64_t> maxRows() {
    auto rows = getOperation()->getAttrOfType<IntegerAttr>(kMaxRowsAttr);
    return rows ? std::optional(rows.getInt()) : std::nullopt;
  }

  AttentionTilingAttr chooseTilingOf(AttentionOp attention) {
    auto headsOf = [](Value value) { return cast<ShapedType>(value.getType()); };
    int64_t group =
        headsOf(attention.getQ()).getDimSize(1) / headsOf(attention.getK()).getDimSize(2);
    bool decodes = maxRows() && *maxRows() <= fewRows && rowRoleOf(getOperation()) != kPromptRole;
    return chooseTiling({decodes, group}, &getContext());
  }

  void runOnOperation() override {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    FailureOr<int64_t> most = readRowsAttr(module, kGemmThresholdAttr, /*least=*/1,
                                           PhaseRows().gemmThreshold),
                       few = readRowsAttr(module, kFewRowsAttr, /*least=*/1, PhaseRows().few);
    if (failed(most) || failed(few))
      return signalPassFailure();
    costs = KernelCosts::of(targetOf(getOperation()));
    costs.minWork = minWork;
    gemmThreshold = *most;
    fewRows = *few;
    // A choice that is in the IR already takes precedence.
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
  KernelCosts costs;         ///< on the module's target
  int64_t gemmThreshold = 0; ///< the most rows that are multiplied by generated kernels
  int64_t fewRows = 0;       ///< the most rows of a function that decodes
};
} // namespace
