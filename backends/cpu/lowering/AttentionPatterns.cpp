//===- AttentionPatterns.cpp - rope, caches and attention -----------------===//

#include "backends/cpu/kernels/attention/Attention.h"
#include "backends/cpu/kernels/attention/Positions.h"
#include "backends/cpu/lowering/Lowering.h"
#include "ir/Mica/RopeFrequencies.h"
#include "passes/support/Phases.h"

using namespace mlir;
using namespace mica;
using namespace mica::cpu;

/// Launches the computation of a table [T, 2, width / 2] of cosines and sines.
static Value launchRopeTable(Launcher &launch, Value positions, Value lengths, int64_t width,
                             double theta, RopeScalingAttr scaling) {
  RopeSpec spec{{}, width / 2, theta, ropeLengthThreshold(scaling)};
  SmallVector<float> frequencies = ropeFrequencies(width, theta, scaling, 0, spec.amplitude);
  std::optional<double> growth = scaling ? scaling.getThetaGrowth() : std::nullopt;
  if (growth)
    spec.growth = *growth;
  else if (spec.lengthThreshold)
    llvm::append_range(frequencies, ropeFrequencies(width, theta, scaling,
                                                    *spec.lengthThreshold + 1, spec.amplitude));
  spec.frequencies = launch.kernels.getOrCreateTable("inv_freq", ArrayRef(frequencies), launch.loc);
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, 2, spec.pairs}, launch.rewriter.getF32Type());
  Value rows = launch.rowsOf(positions);
  SmallVector<Value> inputs{positions};
  if (lengths)
    inputs.push_back(lengths);
  return launch("rope_table",
                launch.parameters(spec.frequencies.getSymName(), spec.amplitude,
                                  spec.lengthThreshold.value_or(0), spec.growth,
                                  spec.growth > 0 ? theta : 0),
                rows, inputs, launch.empty(type, rows),
                [&](KernelBuilder &b, ValueRange args) { emitRopeTable(b, args, spec); })[0];
}

namespace {

// rope_table(positions) => launch of a kernel that writes cosine and sine of each row
struct LowerRopeTable : Lowering<RopeTableOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(RopeTableOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    rewriter.replaceOp(op, launchRopeTable(launch, operands.getPositions(), operands.getLengths(),
                                           op.getRotaryDim(), op.getTheta().convertToDouble(),
                                           op.getScalingAttr()));
    return success();
  }
};

// rope(x, positions) => launches of kernels that write cosine and sine, and rotate the pairs of
// each row
struct LowerRope : Lowering<RopeOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(RopeOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value table =
        launchRopeTable(launch, operands.getPositions(), operands.getLengths(), op.getRotaryWidth(),
                        op.getTheta().convertToDouble(), op.getScalingAttr());
    rewriter.replaceOp(op,
                       launch.overRows("rope", launch.parameters(stringifyPairing(op.getPairing())),
                                       {operands.getX(), table}, op.getType(),
                                       [&](KernelBuilder &b, ValueRange args) {
                                         emitRope(b, args, op.getPairing());
                                       }));
    return success();
  }
};

// sinusoid(positions) => launch of a kernel that writes sine and cosine of each row
struct LowerSinusoid : Lowering<SinusoidOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(SinusoidOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    Launcher launch(rewriter, op.getLoc(), kernels);
    int64_t count = cast<RankedTensorType>(op.getType()).getDimSize(1) / 2;
    auto frequencies = sinusoidFrequencies(count);
    memref::GlobalOp table =
        kernels.getOrCreateTable("inv_freq", ArrayRef(frequencies), launch.loc);
    auto offset = static_cast<int64_t>(op.getOffset());
    std::optional<int64_t> paddingIdx = op.getPaddingIdx();
    Value rows = launch.rowsOf(operands.getPositions());
    rewriter.replaceOp(
        op,
        launch("sinusoid", launch.parameters(table.getSymName(), offset, paddingIdx.value_or(-1)),
               rows, operands.getPositions(), launch.empty(op.getType(), rows),
               [&](KernelBuilder &b, ValueRange args) {
                 emitSinusoid(b, args, table, offset, paddingIdx);
               }));
    return success();
  }
};

// kv_append(x, cache) => launch of a kernel that writes the rows into the cache in place
struct LowerKvAppend : Lowering<KvAppendOp> {
  using Lowering::Lowering;
  LogicalResult matchAndRewrite(KvAppendOp op, OpAdaptor operands,
                                ConversionPatternRewriter &rewriter) const override {
    KvCacheType cache = op.getCache().getType();
    if (!cache.getLayout())
      return op.emitOpError("appends to a cache without a layout");
    Launcher launch(rewriter, op.getLoc(), kernels);
    rewriter.replaceOp(
        op, launch("kv_append", launch.parameters(cache), launch.rowsOf(operands.getX()),
                   {operands.getX(), operands.getSequences(), operands.getPositions(),
                    operands.getLayer()},
                   operands.getCache(),
                   [&](KernelBuilder &b, ValueRange args) { emitKvAppend(b, args, cache); },
                   {.rowCacheBytes = bytesPerPosition(cache)}));
    return success();
  }
};

// qkv_append(qkv, table, k, v) => launch of a kernel that normalizes and rotates q and k, and
// writes k and v into the caches in place
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
      spec.weightOffset = static_cast<float>(op.getWeightOffset().convertToDouble());
      llvm::append_values(inputs, operands.getQNorm(), operands.getKNorm());
    }
    llvm::append_range(inputs, operands.getParts());
    spec.parts = static_cast<int64_t>(op.getParts().size());
    Launcher launch(rewriter, op.getLoc(), kernels);
    Value rows = launch.rowsOf(operands.getQkv());
    ArrayAttr key = launch.parameters(spec.keys, spec.values, stringifyPairing(spec.pairing),
                                      spec.eps.value_or(0), spec.weightOffset, spec.parts);
    rewriter.replaceOp(
        op, launch("qkv_append", key, rows, inputs,
                   {launch.empty(q, rows), operands.getKCache(), operands.getVCache()},
                   [&](KernelBuilder &b, ValueRange args) { emitQkvAppend(b, args, spec); },
                   {.rowCacheBytes = bytesPerPosition(spec.keys) + bytesPerPosition(spec.values)}));
    return success();
  }
};

// attention(q, keys, values) => launch of a kernel over heads and tiles of rows; with a split
// tiling, launches over chunks of positions, and of a kernel that combines the chunks
struct LowerAttention : Lowering<AttentionOp> {
  using Lowering::Lowering;

  /// FLOPs: a score and a weighted sum per head and position.
  static LaunchCost costOf(const AttentionSpec &spec) {
    int64_t ofValues = spec.valuesInKeys ? 0 : bytesPerPosition(spec.values);
    return {.positionCacheBytes = bytesPerPosition(spec.keys) + ofValues,
            .pairFlops = 2 * spec.heads * (spec.keys.getHeadDim() + spec.values.getHeadDim()),
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
    AttentionSpec spec = specOfOp(op, keys.getCache().getType(), values.getCache().getType());
    spec.valuesInKeys = keys.getCache() == values.getCache();
    if (failed(checkParts(op, spec)) || failed(checkTiling(op, spec)))
      return failure();
    if (spec.valuesInKeys)
      spec.values = transposedValues(op, spec.keys);
    Launcher launch(rewriter, op.getLoc(), kernels);
    if (op.getAlibi()) {
      SmallVector<float> slopes(op.getAlibi()->begin(), op.getAlibi()->end());
      spec.slopes = kernels.getOrCreateTable("slopes", ArrayRef(slopes), launch.loc);
    }
    SmallVector<Value> inputs{operands.getQ(),
                              rewriter.getRemappedValue(keys.getCache()),
                              rewriter.getRemappedValue(values.getCache()),
                              keys.getLayer(),
                              operands.getSequences(),
                              operands.getPositions()};
    ArrayAttr key = launch.parameters(
        spec.keys, spec.values, spec.scale, spec.window.value_or(0), spec.softcap.value_or(0),
        spec.tiling, spec.slopes ? spec.slopes.getSymName() : "", spec.sinks, spec.valuesInKeys);
    Value result = launch.empty(op.getType(), launch.rowsOf(operands.getQ()));
    Value sinks = operands.getSinks();
    rewriter.replaceOp(op, spec.tiling.getSplit()
                               ? launchChunks(launch, spec, key, inputs, sinks, result)
                               : launchTiles(launch, spec, key, inputs, sinks, result));
    return success();
  }

private:
  static AttentionSpec specOfOp(AttentionOp op, KvCacheType keys, KvCacheType values) {
    AttentionSpec spec{cast<RankedTensorType>(op.getQ().getType()).getDimSize(1),
                       keys,
                       values,
                       op.getScale().convertToDouble(),
                       {},
                       {},
                       op.getTilingAttr()};
    spec.sinks = !!op.getSinks();
    if (op.getWindow())
      spec.window = *op.getWindow();
    if (op.getSoftcap())
      spec.softcap = op.getSoftcap()->convertToDouble();
    return spec;
  }

  /// Values may be the first elements of the keys; otherwise attention must read whole heads of
  /// both caches.
  static LogicalResult checkParts(AttentionOp op, const AttentionSpec &spec) {
    auto width = [](Value read) { return cast<ShapedType>(read.getType()).getDimSize(3); };
    if (width(op.getK()) != spec.keys.getHeadDim())
      return op.emitOpError("attends to parts of its keys");
    if (!spec.valuesInKeys && width(op.getV()) != spec.values.getHeadDim())
      return op.emitOpError("attends to part of its values, which is supported only for values in "
                            "the cache of the keys");
    if (spec.valuesInKeys && spec.keys.getLayout() &&
        spec.keys.getLayout().getKind() != KvKind::Keys)
      return op.emitOpError("reads keys from a cache that is stored as values");
    return success();
  }

  /// The type of the transposed copy of the values that are stored in the cache of keys.
  static KvCacheType transposedValues(AttentionOp op, KvCacheType keys) {
    KvLayoutAttr layout = keys.getLayout();
    return keys.withHeads(keys.getHeads(), cast<ShapedType>(op.getV().getType()).getDimSize(3))
        .withLayout(KvLayoutAttr::get(op.getContext(), KvKind::Values, layout.getBlock(),
                                      layout.getDepth()));
  }

  static LogicalResult checkTiling(AttentionOp op, const AttentionSpec &spec) {
    if (!spec.tiling)
      return op.emitOpError("has no tiling chosen");
    if (!spec.keys.getLayout() || !spec.values.getLayout())
      return op.emitOpError("attends to caches without a layout");
    int64_t block = spec.keys.getLayout().getBlock();
    if (spec.values.getLayout().getBlock() != block || block % kLanes != 0)
      return op.emitOpError() << "needs caches with the same blocks of a multiple of " << kLanes
                              << " positions";
    for (KvCacheType cache : {spec.keys, spec.values})
      if (isQuantized(cache.getElementType()) && cache.getLayout().getDepth() != 4)
        return op.emitOpError() << "needs int8 caches of depth 4, got "
                                << cache.getLayout().getDepth();
    if (spec.tiling.getChunk() % block != 0)
      return op.emitOpError() << "has chunks of " << spec.tiling.getChunk()
                              << " positions, not a multiple of the caches' blocks of " << block;
    return success();
  }

  /// Launches a task per tile of rows and part of the query heads.
  static Value launchTiles(Launcher &launch, const AttentionSpec &spec, ArrayAttr key,
                           ValueRange inputs, Value sinks, Value result) {
    TargetDescription target;
    KernelBuilder b(launch.loc, launch.rewriter, target);
    SmallVector<Value> all(inputs);
    if (sinks)
      all.push_back(sinks);
    int64_t ofTile = spec.tiling.getRows();
    Value tiles = b.div(b.add(launch.rowsOf(inputs.front()), ofTile - 1), ofTile);
    return launch(
        "attention", key, b.mul(tiles, spec.headTasks()), all, result,
        [&](KernelBuilder &b, ValueRange args) { emitAttention(b, args, spec); }, costOf(spec))[0];
  }

  /// A task per part of the query heads, chunk and row; then, where a row has more than one chunk,
  /// a task per query head and row that combines them.
  static Value launchChunks(Launcher &launch, const AttentionSpec &spec, ArrayAttr key,
                            ValueRange inputs, Value sinks, Value result) {
    TargetDescription target;
    KernelBuilder b(launch.loc, launch.rewriter, target);
    Value rows = launch.rowsOf(inputs.front()), positions = inputs.back();
    Value maxCount = maxChunks(b, spec, positions, rows);
    SmallVector<Value> all(inputs);
    all.push_back(maxCount);
    if (sinks)
      all.push_back(sinks);
    Value tasks = b.mul(arith::MulIOp::create(b, rows, maxCount), spec.headTasks());
    SmallVector<Value> made = launch(
        "attention_chunks", key, tasks, all, {launch.empty(partsType(b, spec), rows), result},
        [&](KernelBuilder &b, ValueRange args) { emitAttentionChunks(b, args, spec); },
        costOf(spec));
    Value several = arith::CmpIOp::create(b, arith::CmpIPredicate::ugt, maxCount, b.idx(1));
    tasks = arith::SelectOp::create(b, several, b.mul(rows, spec.heads), b.idx(0));
    SmallVector<Value> combined{positions, made[0]};
    if (sinks)
      combined.push_back(sinks);
    return launch(
        "attention_combine", key, tasks, combined, made[1],
        [&](KernelBuilder &b, ValueRange args) { emitAttentionCombine(b, args, spec); })[0];
  }

  /// The type of the partial results of all chunks of all rows. If the function has a maximum
  /// number of rows, the buffer has that size, because otherwise it would count as memory per row,
  /// which functions for many rows would reserve as well.
  static RankedTensorType partsType(KernelBuilder &b, const AttentionSpec &spec) {
    Operation *parent = b.getInsertionBlock()->getParentOp();
    auto function = dyn_cast<func::FuncOp>(parent);
    if (!function)
      function = parent->getParentOfType<func::FuncOp>();
    auto limit = function->getAttrOfType<IntegerAttr>(kMaxRowsAttr);
    return RankedTensorType::get({limit ? limit.getInt() : ShapedType::kDynamic, spec.maxChunks(),
                                  spec.heads, spec.stateWidth()},
                                 b.getF32Type());
  }

  /// The maximum number of chunks that a row attends to, at least one.
  static Value maxChunks(KernelBuilder &b, const AttentionSpec &spec, Value positions, Value rows) {
    return b.carry(b.idx(0), rows, 1, b.idx(1),
                   [&](Value row, ValueRange maxCount) -> SmallVector<Value> {
                     Value position = arith::IndexCastOp::create(
                         b, b.getIndexType(), tensor::ExtractOp::create(b, positions, row));
                     Value count = emitChunkCount(b, position, spec);
                     return {arith::MaxUIOp::create(b, maxCount[0], count)};
                   })[0];
  }
};

} // namespace

void mica::cpu::populateAttentionPatterns(RewritePatternSet &patterns,
                                          const TypeConverter &converter, KernelLibrary &kernels) {
  patterns
      .add<LowerRopeTable, LowerRope, LowerSinusoid, LowerKvAppend, LowerQkvAppend, LowerAttention>(
          converter, patterns.getContext(), kernels);
}
