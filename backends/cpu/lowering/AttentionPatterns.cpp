//===- AttentionPatterns.cpp - rope, caches and attention --------------------------===//

#include "backends/cpu/lowering/Lowering.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// [T, 2, width / 2] of cosines and sines.
static Value launchRopeTable(Launcher &launch, Value positions, int64_t width, double theta,
                             Attribute scaling) {
  float amplitude;
  SmallVector<float> frequencies = ropeFrequencies(width, theta, scaling, amplitude);
  OpBuilder &builder = launch.rewriter;
  int64_t pairs = frequencies.size();
  auto values = DenseElementsAttr::get(RankedTensorType::get({pairs}, builder.getF32Type()),
                                       ArrayRef<float>(frequencies));
  memref::GlobalOp table = launch.kernels.getOrCreateTable("inv_freq", values, launch.loc);
  auto type = RankedTensorType::get({ShapedType::kDynamic, 2, pairs}, builder.getF32Type());
  Value rows = launch.rowsOf(positions);
  return launch("rope_table", specOf(table.getSymName(), amplitude), rows, positions,
                launch.empty(type, rows), [&](KernelBuilder &b, ValueRange args) {
                  emitRopeTable(b, args, table, amplitude);
                })[0];
}

namespace {

struct LowerRopeTable : Lowering<RopeTableOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(RopeTableOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    rewriter.replaceOp(op, launchRopeTable(launch, operands.getPositions(), op.getRotaryDim(),
                                           op.getTheta().convertToDouble(), op.getScalingAttr()));
    return success();
  }
};

struct LowerRope : Lowering<RopeOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(RopeOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value table = launchRopeTable(launch, operands.getPositions(), op.getRotaryWidth(),
                                  op.getTheta().convertToDouble(), op.getScalingAttr());
    Value rows = launch.rowsOf(operands.getX());
    rewriter.replaceOp(
        op, launch("rope", stringifyPairing(op.getPairing()), rows, {operands.getX(), table},
                   launch.empty(op.getType(), rows),
                   [&](KernelBuilder &b, ValueRange args) { emitRope(b, args, op.getPairing()); }));
    return success();
  }
};

struct LowerKvAppend : Lowering<KvAppendOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(KvAppendOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    KvCacheType cache = op.getCache().getType();
    if (!cache.getLayout())
      return op.emitOpError("appends to a cache without a layout");
    Launcher launch(rewriter, op.getLoc(), kernels);
    rewriter.replaceOp(
        op, launch("kv_append", specOf(Type(cache)), launch.rowsOf(operands.getX()),
                   {operands.getX(), operands.getSequences(), operands.getPositions(),
                    operands.getLayer()},
                   operands.getCache(),
                   [&](KernelBuilder &b, ValueRange args) { emitKvAppend(b, args, cache); },
                   {.rowCacheBytes = bytesPerPosition(cache)}));
    return success();
  }
};

struct LowerQkvAppend : Lowering<QkvAppendOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(QkvAppendOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    auto q = cast<RankedTensorType>(op.getQ().getType());
    QkvAppendSpec spec{
        q.getDimSize(1), op.getKCache().getType(), op.getVCache().getType(), op.getPairing(), {}};
    if (!spec.keys.getLayout() || !spec.values.getLayout())
      return op.emitOpError("appends to a cache without a layout");
    SmallVector<Value> inputs{operands.getQkv(), operands.getTable(), operands.getSequences(),
                              operands.getPositions(), operands.getLayer()};
    if (op.getEps()) {
      spec.eps = op.getEps()->convertToDouble();
      llvm::append_values(inputs, operands.getQNorm(), operands.getKNorm());
    }
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value rows = launch.rowsOf(operands.getQkv());
    std::string key = specOf(Type(spec.keys), Type(spec.values), stringifyPairing(spec.pairing),
                             spec.eps.value_or(0));
    rewriter.replaceOp(
        op, launch("qkv_append", key, rows, inputs,
                   {launch.empty(q, rows), operands.getKCache(), operands.getVCache()},
                   [&](KernelBuilder &b, ValueRange args) { emitQkvAppend(b, args, spec); },
                   {.rowCacheBytes = bytesPerPosition(spec.keys) + bytesPerPosition(spec.values)}));
    return success();
  }
};

struct LowerAttention : Lowering<AttentionOp> {
  using Lowering::Lowering;

  /// A score and a weighted sum per head and position.
  static LaunchCost costOf(const AttentionSpec &spec) {
    return {.positionCacheBytes = bytesPerPosition(spec.keys) + bytesPerPosition(spec.values),
            .pairFlops = 4 * spec.heads * spec.keys.getHeadDim(),
            .window = spec.window.value_or(0)};
  }

  LogicalResult matchAndRewrite(AttentionOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    auto keys = op.getK().getDefiningOp<KvReadOp>(), values = op.getV().getDefiningOp<KvReadOp>();
    if (!keys || !values || keys.getLayer() != values.getLayer())
      return op.emitOpError(
          "attends to keys and values that are not read from one layer of the caches");
    if (op.getKeyMask())
      return op.emitOpError("has a key_mask: programs run ragged batches, which need no padding");
    if (op.getMask() != MaskKind::Causal)
      return op.emitOpError("has mask full: programs decode causally");
    auto q = cast<RankedTensorType>(op.getQ().getType());
    AttentionSpec spec{q.getDimSize(1),
                       keys.getCache().getType(),
                       values.getCache().getType(),
                       op.getScale().convertToDouble(),
                       {},
                       {}};
    if (op.getWindow())
      spec.window = *op.getWindow();
    if (op.getSoftcap())
      spec.softcap = op.getSoftcap()->convertToDouble();
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value rows = launch.rowsOf(operands.getQ());
    Value tasks =
        arith::MulIOp::create(rewriter, op.getLoc(), rows, launch.constant(spec.keys.getHeads()));
    SmallVector<Value> inputs{operands.getQ(),
                              rewriter.getRemappedValue(keys.getCache()),
                              rewriter.getRemappedValue(values.getCache()),
                              keys.getLayer(),
                              operands.getSequences(),
                              operands.getPositions()};
    std::string key = specOf(Type(spec.keys), Type(spec.values), spec.scale,
                             spec.window.value_or(0), spec.softcap.value_or(0));
    rewriter.replaceOp(op,
                       launch(
                           "attention", key, tasks, inputs, launch.empty(op.getType(), rows),
                           [&](KernelBuilder &b, ValueRange args) { emitAttention(b, args, spec); },
                           costOf(spec)));
    return success();
  }
};

} // namespace

void mica::cpu::populateAttentionPatterns(RewritePatternSet &patterns,
                                          const TypeConverter &converter, KernelLibrary &kernels) {
  patterns.add<LowerRopeTable, LowerRope, LowerKvAppend, LowerQkvAppend, LowerAttention>(
      converter, patterns.getContext(), kernels);
}
