//===- FoldRepeatKv.cpp - attention reads shared heads in place -----------===//

#include "passes/Passes.h"
#include "passes/fusion/Driver.h"

namespace mica {
#define GEN_PASS_DEF_FOLDREPEATKV
#include "passes/Passes.h.inc"
} // namespace mica

using namespace mlir;
using namespace mica;

namespace {
// attention(q, repeat_kv(k), repeat_kv(v)) => attention(q, k, v)
struct AttentionRepeatsHeadsItself : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(AttentionOp attention, PatternRewriter &rewriter) const override {
    auto keys = attention.getK().getDefiningOp<RepeatKvOp>();
    auto values = attention.getV().getDefiningOp<RepeatKvOp>();
    if (!keys && !values)
      return rewriter.notifyMatchFailure(attention, "nothing is repeated");
    if (!keys || !values)
      return rewriter.notifyMatchFailure(attention,
                                         "only the keys or only the values are repeated");
    if (keys.getTimes() != values.getTimes())
      return rewriter.notifyMatchFailure(attention, "keys and values are repeated differently");
    rewriter.modifyOpInPlace(attention, [&] {
      attention.getKMutable().assign(keys.getX());
      attention.getVMutable().assign(values.getX());
      attention->setLoc(rewriter.getFusedLoc({attention.getLoc(), keys.getLoc(), values.getLoc()}));
    });
    return success();
  }
};

struct FoldRepeatKv : mica::impl::FoldRepeatKvBase<FoldRepeatKv> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<AttentionRepeatsHeadsItself>(&getContext());
    if (failed(applyFusion(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
