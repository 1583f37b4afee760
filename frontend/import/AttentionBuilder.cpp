#include "frontend/import/AttentionBuilder.h"

#include "frontend/import/LayerSignature.h"
#include "ir/Mica/Mica.h"

#include <cmath>

using namespace mlir;

namespace mica {

namespace {

class AttentionBuilder : LayerPart {
public:
  explicit AttentionBuilder(const LayerPart &layer) : LayerPart(layer) {}

  Value attention(Value x);

private:
  struct Heads {
    Value queries, keys, values;
    Value gate = {}; // gate of the result, or null
  };
  Heads projected(Value x);
  Heads ofLatents(Value x);
  Value rope(Value heads);
  Value headsOf(Value rows, int64_t count, llvm::StringRef module, llvm::StringRef normModule);
  Value normalized(Value values);
  Value append(Value heads, Value &cache);
  Value read(Value cache);
};

Value AttentionBuilder::rope(Value heads) {
  const RopeConfig &rope = kind.attention.rope;
  IntegerAttr width;
  if (rope.dimensions != cast<RankedTensorType>(heads.getType()).getDimSize(2))
    width = builder.getI64IntegerAttr(rope.dimensions);
  return RopeOp::create(builder, at(attentionModule() + ".rope"), heads.getType(), heads, positions,
                        values.lengths, PairingAttr::get(builder.getContext(), rope.pairing),
                        builder.getF64FloatAttr(rope.theta), width,
                        rope.scalingAttribute(builder.getContext()));
}

/// Queries or keys as heads, normalized and rotated according to the layer type.
Value AttentionBuilder::headsOf(Value rows, int64_t count, llvm::StringRef module,
                                llvm::StringRef normModule) {
  const AttentionConfig &a = kind.attention;
  if (a.qkNorm == QkNorm::AllHeads)
    rows = norm(rows, normModule, a.norm);
  Value result = heads(rows, count, a.headDim, module);
  if (a.qkNorm == QkNorm::PerHead || a.qkNorm == QkNorm::OwnPerHead)
    result = norm(result, normModule, a.norm);
  return a.rope.dimensions == 0 ? result : rope(result);
}

/// The heads of `values` divided by their root mean square, which is their Euclidean norm /
/// sqrt(D).
Value AttentionBuilder::normalized(Value values) {
  const AttentionConfig &a = kind.attention;
  if (!a.valueEps)
    return values;
  auto size = static_cast<double>(a.valueDim);
  Location loc = values.getLoc();
  Value unit = L2NormOp::create(builder, loc, values, builder.getF64FloatAttr(*a.valueEps * size));
  return buildScale(builder, loc, unit, std::sqrt(size));
}

Value AttentionBuilder::append(Value heads, Value &cache) {
  cache = KvAppendOp::create(builder, at(attentionModule() + ".kv_append"), cache.getType(), heads,
                             cache, stateLayer, sequences, positions);
  return read(cache);
}

/// The cached heads of this layer, repeated for the query heads that share them.
Value AttentionBuilder::read(Value cache) {
  const AttentionConfig &a = kind.attention;
  auto typeOf = [&](int64_t count) {
    auto type = cast<KvCacheType>(cache.getType());
    return RankedTensorType::get(
        {ShapedType::kDynamic, ShapedType::kDynamic, count, type.getHeadDim()},
        type.getElementType());
  };
  Location loc = at(attentionModule() + ".repeat_kv");
  Value cached = KvReadOp::create(builder, loc, typeOf(a.kvHeads), cache, stateLayer);
  if (a.heads == a.kvHeads)
    return cached;
  return RepeatKvOp::create(builder, loc, typeOf(a.heads), cached,
                            builder.getI64IntegerAttr(a.heads / a.kvHeads));
}

AttentionBuilder::Heads AttentionBuilder::projected(Value x) {
  const AttentionConfig &a = kind.attention;
  Value q = linear(x, names.query);
  if (a.sharesCache)
    return {headsOf(q, a.heads, names.query, names.queryNorm), {}, {}};
  Value k = linear(x, names.key), v = a.valuesAreKeys ? k : linear(x, names.value);
  Value gate = a.outputGate ? linear(x, names.query + "_gate") : Value();
  return {headsOf(q, a.heads, names.query, names.queryNorm),
          headsOf(k, a.kvHeads, names.key, names.keyNorm),
          normalized(heads(v, a.kvHeads, a.headDim, names.value)), gate};
}

/// Heads of latent attention. Queries and keys consist of an unrotated and a rotated part; all
/// heads share the rotated part of the keys.
AttentionBuilder::Heads AttentionBuilder::ofLatents(Value x) {
  const AttentionConfig &a = kind.attention;
  const LatentConfig &l = *a.latent;
  Value from = x;
  if (l.queryRank != 0)
    from = norm(linear(x, names.queryDown), names.queryDownNorm, a.norm);
  std::string up = (l.queryRank == 0 ? names.query : names.queryUp).str();
  std::string down = names.latentDown.str(), made = names.latentUp.str();
  auto part = [&](Value rows, int64_t count, int64_t size, const std::string &module) {
    return heads(linear(rows, module), count, size, module);
  };
  Value unrotatedQueries = part(from, a.heads, l.qkNopeHeadDim, up + "_plain");
  Value rotatedQueries = rope(part(from, a.heads, l.qkRopeHeadDim, up + "_rotated"));
  Value latent = norm(linear(x, down + "_plain"), names.latentNorm, a.norm);
  Value rotatedKeys = rope(part(x, 1, l.qkRopeHeadDim, down + "_rotated"));
  Value plainKeys = part(latent, a.heads, l.qkNopeHeadDim, made + "_keys");
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, a.heads, a.headDim}, builder.getF32Type());
  auto join = [&](Value plain, Value rotated, const std::string &module) {
    return ConcatHeadsOp::create(builder, at(module), type, plain, rotated);
  };
  return {join(unrotatedQueries, rotatedQueries, up), join(plainKeys, rotatedKeys, made),
          part(latent, a.heads, a.valueDim, made + "_values")};
}

Value AttentionBuilder::attention(Value x) {
  const AttentionConfig &a = kind.attention;
  x = buildScale(builder, at(attentionModule()), x, a.inMultiplier);
  Heads made = a.latent ? ofLatents(x) : projected(x);
  auto cachedOf = [&](Value heads, Value &cache) {
    return a.sharesCache ? read(cache) : append(heads, cache);
  };
  Value keys = cachedOf(made.keys, state(kKeyCache)),
        cached = cachedOf(made.values, state(kValueCache));
  Location loc = at(attentionModule());
  auto window = a.window ? builder.getI64IntegerAttr(*a.window) : IntegerAttr();
  auto softcap = a.softcap ? builder.getF64FloatAttr(*a.softcap) : FloatAttr();
  auto slopes = a.slopes.empty() ? DenseF64ArrayAttr() : builder.getDenseF64ArrayAttr(a.slopes);
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, a.heads, a.valueDim}, builder.getF32Type());
  Value seen =
      AttentionOp::create(builder, loc, type, made.queries, keys, cached, sequences, positions,
                          /*key_mask=*/Value(), a.sinks ? weight(names.sinks) : Value(),
                          MaskKindAttr::get(builder.getContext(), MaskKind::Causal),
                          builder.getF64FloatAttr(a.scale), window, softcap, slopes,
                          /*tiling=*/AttentionTilingAttr());
  Value merged = MergeHeadsOp::create(builder, loc, rowsType(builder, a.heads * a.valueDim), seen);
  if (made.gate)
    merged = SigmoidGateOp::create(builder, at(names.query + "_gate"), merged.getType(), merged,
                                   made.gate);
  return buildScale(builder, at(names.out), linear(merged, names.out), a.outMultiplier);
}

} // namespace

Value buildAttention(const LayerPart &layer, Value x) {
  return AttentionBuilder(layer).attention(x);
}

} // namespace mica
