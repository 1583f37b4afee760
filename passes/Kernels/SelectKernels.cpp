//===- SelectKernels.cpp - who computes each product, attention in which tiles ----===//

#include "passes/Kernels/CostModel.h"
#include "passes/Kernels/Phases.h"
#include "passes/Passes.h"

namespace mica {
#define GEN_PASS_DEF_SELECTKERNELS
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
struct SelectKernels : mica::impl::SelectKernelsBase<SelectKernels> {
  using SelectKernelsBase::SelectKernelsBase;

  /// A prompt has many rows, but mostly one of them, its last, is multiplied with the vocabulary.
  KernelKind choose(LmHeadOp) { return KernelKind::Generated; }
  template <typename Op> KernelKind choose(Op op) { return choose(op.getWeight().getType()); }

  KernelKind choose(RankedTensorType weight) {
    // Few rows: the weights are read once from memory, which generated kernels do at its bandwidth.
    if (getOperation()->hasAttr(kMaxRowsAttr))
      return KernelKind::Generated;
    ProductShape shape{manyRows, weight.getDimSize(0), weight.getDimSize(1),
                       precisionOf(weight.getElementType())};
    return chooseKernel(shape, {minWork, onednnF32, onednnBf16, onednnInt8});
  }

  AttentionTilingAttr chooseTilingOf(AttentionOp attention) {
    auto headsOf = [](Value value) { return cast<ShapedType>(value.getType()); };
    int64_t group =
        headsOf(attention.getQ()).getDimSize(1) / headsOf(attention.getK()).getDimSize(2);
    return chooseTiling({getOperation()->hasAttr(kMaxRowsAttr), group}, &getContext());
  }

  void runOnOperation() override {
    // A choice that stands in the IR already was made by someone who knows better.
    getOperation().walk([&](Operation *op) {
      TypeSwitch<Operation *>(op)
          .Case<LinearOp, LmHeadOp, GatedLinearOp>([&](auto product) {
            if (!product.getKernel())
              product.setKernel(choose(product));
          })
          .Case([&](AttentionOp attention) {
            if (!attention.getTiling())
              attention.setTilingAttr(chooseTilingOf(attention));
          });
    });
  }
};
} // namespace
