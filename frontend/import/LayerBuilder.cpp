#include "frontend/import/LayerBuilder.h"

#include "frontend/import/WeightPlan.h"
#include "ir/Mica/Activations.h"
#include "ir/Mica/Names.h"

#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;

namespace mica {

RankedTensorType rowsType(OpBuilder &builder, int64_t width) {
  return RankedTensorType::get({ShapedType::kDynamic, width}, builder.getF32Type());
}

RankedTensorType indexRowsType(OpBuilder &builder) {
  return RankedTensorType::get({ShapedType::kDynamic}, builder.getI32Type());
}

void nameArguments(func::FuncOp function, llvm::ArrayRef<llvm::StringRef> names) {
  for (auto [argument, name] : llvm::zip(function.getArguments(), names))
    argument.setLoc(nameWithin(function.getLoc(), name));
}

Value buildNorm(OpBuilder &builder, Location loc, Value x, Value weight, Value bias,
                const NormConfig &config) {
  FloatAttr eps = builder.getF64FloatAttr(config.eps);
  if (config.kind == NormKind::Layer)
    return LayerNormOp::create(builder, loc, x.getType(), x, weight, bias, eps);
  return RmsNormOp::create(builder, loc, x.getType(), x, weight, eps,
                           NormRoundingAttr::get(builder.getContext(), config.rounding),
                           builder.getF64FloatAttr(config.weightOffset));
}

Value buildScale(OpBuilder &builder, Location loc, Value x, double factor) {
  if (factor == 1)
    return x;
  return ScaleOp::create(builder, loc, x.getType(), x, builder.getF64FloatAttr(factor));
}

llvm::ArrayRef<llvm::StringLiteral> stateNames(const LayerKind &kind) {
  static constexpr llvm::StringLiteral conv[] = {"conv_state"},
                                       all[] = {"k_cache", "v_cache", "conv_state",
                                                "recurrent_state"};
  if (kind.conv)
    return conv;
  llvm::ArrayRef<llvm::StringLiteral> names(all);
  if (!kind.mamba && !kind.delta)
    return names.take_front(2);
  return kind.hasAttention() ? names : names.take_back(2);
}

bool followsLength(const LayerKind &kind) {
  return kind.hasAttention() && kind.attention.rope.followsLength();
}

llvm::StringRef stateLayerName(const LayerKind &kind, bool numbered) {
  return !numbered ? "layer" : kind.hasAttention() ? "cache_layer" : "state_layer";
}

llvm::SmallVector<llvm::StringRef> layerArguments(const LayerKind &kind, bool numbered) {
  llvm::SmallVector<llvm::StringRef> names = {"x"};
  llvm::append_range(names, stateNames(kind));
  names.push_back("layer");
  if (numbered)
    names.push_back(stateLayerName(kind, numbered));
  names.append({"sequences", "positions"});
  if (followsLength(kind))
    names.push_back("lengths");
  return names;
}

namespace {

/// The attribute of each scaling of rope; null for none.
struct ScalingAttrs {
  OpBuilder &builder;

  FloatAttr number(double value) const { return builder.getF64FloatAttr(value); }

  Attribute operator()(std::monostate) const { return {}; }
  Attribute operator()(const LinearScaling &s) const {
    return LinearScalingAttr::get(builder.getContext(), number(s.factor));
  }
  Attribute operator()(const YarnScaling &s) const {
    return YarnScalingAttr::get(builder.getContext(), number(s.factor), number(s.betaFast),
                                number(s.betaSlow), number(s.attentionFactor), s.original,
                                s.highLimit, s.truncate);
  }
  Attribute operator()(const Llama3Scaling &s) const {
    return Llama3ScalingAttr::get(builder.getContext(), number(s.factor), number(s.lowFrequency),
                                  number(s.highFrequency), s.original);
  }
  Attribute operator()(const LongRopeScaling &s) const {
    return LongRopeScalingAttr::get(
        builder.getContext(), builder.getDenseF64ArrayAttr(s.shortFactors),
        builder.getDenseF64ArrayAttr(s.longFactors), number(s.attentionFactor), s.original);
  }
  Attribute operator()(const DynamicScaling &s) const {
    return DynamicScalingAttr::get(builder.getContext(), number(s.factor), s.original);
  }
};

class LayerBuilder {
public:
  LayerBuilder(OpBuilder &builder, const ModelConfig &model, const LayerKind &kind, bool numbered,
               func::FuncOp function)
      : builder(builder), model(model), names(*model.names), kind(kind), numbered(numbered),
        function(function) {}

  void build();

private:
  using Names = llvm::StringLiteral;

  void takeArguments();
  struct Heads {
    Value queries, keys, values;
    Value gate = {}; // of the result, null for none
  };
  Heads projected(Value x);
  Heads ofLatents(Value x);
  Value attention(Value x);
  Value conv(Value x);
  Value filtered(Value inputs);
  Value decay(Value &steps);
  Value scaledParts(Value inputs);
  Value mamba(Value x);
  Value deltaNet(Value x);
  Value mix(Value x);
  /// The state of the convolution, and the one of the scan after it.
  Value &convState() { return states[kind.hasAttention() ? 2 : 0]; }
  Value &scanState() { return states[kind.hasAttention() ? 3 : 1]; }
  Location mixerLocation() const;
  Value ffn(Value x);
  Value added(Value stream, Value result, llvm::StringRef postNorm, Location loc);
  Value dense(Value x, const llvm::Twine &gate, const llvm::Twine &up, const llvm::Twine &down,
              const DenseConfig &config);
  Value sparse(Value x, const SparseConfig &config);

  Value heads(Value rows, int64_t count, int64_t size, const llvm::Twine &module);
  Value rope(Value heads);
  Value headsOf(Value rows, int64_t count, llvm::StringRef module, llvm::StringRef normModule);
  Value append(Value heads, Value &cache);
  Value read(Value cache);
  Value linear(Value x, const llvm::Twine &module);
  Value norm(Value x, llvm::StringRef module, const NormConfig &config);
  Value activate(Value x, Activation activation, Location loc);

  /// The module's place in any layer: "model.layers.*.self_attn.q_proj".
  Location at(const llvm::Twine &module) const {
    return NameLoc::get(builder.getStringAttr(names.layers + ".*." + module));
  }
  /// The attention's own module: what is before the last dot of its query's name.
  std::string attentionModule() const {
    return llvm::StringRef(names.query).rsplit('.').first.str();
  }
  std::string mambaModule() const { return llvm::StringRef(names.mambaIn).rsplit('.').first.str(); }
  std::string deltaModule() const {
    return llvm::StringRef(names.deltaOut).rsplit('.').first.str();
  }
  std::string ffnModule() const { return llvm::StringRef(names.up).rsplit('.').first.str(); }
  Value weight(const llvm::Twine &name) const { return weights.lookup(name.str()); }

  OpBuilder &builder;
  const ModelConfig &model;
  const NamingTable &names;
  const LayerKind &kind;
  bool numbered;
  func::FuncOp function;
  llvm::StringMap<Value> weights; // null where the kind has no such weight
  Value x, sequences, positions;
  llvm::SmallVector<Value> states; // those that stateNames names
  Value stateLayer;                // index of the layer in its states
  Value lengths;                   // null where the kind's rope follows none
};

void LayerBuilder::takeArguments() {
  Block *body = function.addEntryBlock();
  llvm::SmallVector<llvm::StringRef> argumentNames = layerArguments(kind, numbered);
  nameArguments(function, argumentNames);
  llvm::StringMap<Value> given;
  for (auto [name, argument] : llvm::zip(argumentNames, body->getArguments()))
    given[name] = argument;
  x = given.at("x");
  for (llvm::StringRef name : stateNames(kind))
    states.push_back(given.at(name));
  stateLayer = given.at(stateLayerName(kind, numbered));
  sequences = given.at("sequences");
  positions = given.at("positions");
  lengths = given.lookup("lengths");
  for (auto [weight, argument] : llvm::zip_equal(
           layerWeights(model, kind), body->getArguments().drop_front(argumentNames.size()))) {
    weights[weight.name] = argument;
    argument.setLoc(at(weight.name));
  }
  builder.setInsertionPointToStart(body);
}

Value LayerBuilder::linear(Value x, const llvm::Twine &module) {
  Value w = weight(module + ".weight"), bias = weight(module + ".bias");
  auto type = rowsType(builder, cast<RankedTensorType>(w.getType()).getDimSize(0));
  return LinearOp::create(builder, at(module), type, x, w, bias, /*residual=*/Value(),
                          /*kernel=*/KernelKindAttr());
}

Value LayerBuilder::norm(Value x, llvm::StringRef module, const NormConfig &config) {
  return buildNorm(builder, at(module), x, weight(module + ".weight"), weight(module + ".bias"),
                   config);
}

Value LayerBuilder::heads(Value rows, int64_t count, int64_t size, const llvm::Twine &module) {
  auto type = RankedTensorType::get({ShapedType::kDynamic, count, size}, builder.getF32Type());
  return SplitHeadsOp::create(builder, at(module), type, rows);
}

Value LayerBuilder::rope(Value heads) {
  const RopeConfig &rope = kind.attention.rope;
  IntegerAttr width;
  if (rope.dimensions != cast<RankedTensorType>(heads.getType()).getDimSize(2))
    width = builder.getI64IntegerAttr(rope.dimensions);
  return RopeOp::create(builder, at(attentionModule() + ".rope"), heads.getType(), heads, positions,
                        lengths, PairingAttr::get(builder.getContext(), rope.pairing),
                        builder.getF64FloatAttr(rope.theta), width,
                        std::visit(ScalingAttrs{builder}, rope.scaling));
}

/// Queries or keys, normalized and rotated as the kind has it.
Value LayerBuilder::headsOf(Value rows, int64_t count, llvm::StringRef module,
                            llvm::StringRef normModule) {
  const AttentionConfig &a = kind.attention;
  if (a.qkNorm == QkNorm::AllHeads)
    rows = norm(rows, normModule, a.norm);
  Value result = heads(rows, count, a.headDim, module);
  if (a.qkNorm == QkNorm::PerHead || a.qkNorm == QkNorm::OwnPerHead)
    result = norm(result, normModule, a.norm);
  return a.rope.dimensions == 0 ? result : rope(result);
}

Value LayerBuilder::append(Value heads, Value &cache) {
  cache = KvAppendOp::create(builder, at(attentionModule() + ".kv_append"), cache.getType(), heads,
                             cache, stateLayer, sequences, positions);
  return read(cache);
}

/// The cached heads of this layer, each repeated for the query heads that share it.
Value LayerBuilder::read(Value cache) {
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

LayerBuilder::Heads LayerBuilder::projected(Value x) {
  const AttentionConfig &a = kind.attention;
  Value q = linear(x, names.query), k = linear(x, names.key), v = linear(x, names.value);
  Value gate = a.outputGate ? linear(x, names.query + "_gate") : Value();
  return {headsOf(q, a.heads, names.query, names.queryNorm),
          headsOf(k, a.kvHeads, names.key, names.keyNorm),
          heads(v, a.kvHeads, a.headDim, names.value), gate};
}

/// Queries and keys have a part that rope rotates after one that it does not; all heads have the
/// same rotated part of the keys.
LayerBuilder::Heads LayerBuilder::ofLatents(Value x) {
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

Value LayerBuilder::attention(Value x) {
  const AttentionConfig &a = kind.attention;
  x = buildScale(builder, at(attentionModule()), x, a.inMultiplier);
  Heads made = a.latent ? ofLatents(x) : projected(x);
  Value keys = append(made.keys, states[0]), values = append(made.values, states[1]);
  Location loc = at(attentionModule());
  auto window = a.window ? builder.getI64IntegerAttr(*a.window) : IntegerAttr();
  auto softcap = a.softcap ? builder.getF64FloatAttr(*a.softcap) : FloatAttr();
  auto slopes = a.slopes.empty() ? DenseF64ArrayAttr() : builder.getDenseF64ArrayAttr(a.slopes);
  auto type =
      RankedTensorType::get({ShapedType::kDynamic, a.heads, a.valueDim}, builder.getF32Type());
  Value seen =
      AttentionOp::create(builder, loc, type, made.queries, keys, values, sequences, positions,
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

/// out(c * conv(b * x))
Value LayerBuilder::conv(Value x) {
  auto part = [&](const char *name) { return linear(x, names.convIn + name); };
  Value b = part("_b"), c = part("_c"), value = part("_x");
  Location loc = at(names.conv);
  Value inputs = MulOp::create(builder, loc, b, value);
  return linear(MulOp::create(builder, loc, c, filtered(inputs)), names.convOut);
}

/// The layer's convolution of its inputs.
Value LayerBuilder::filtered(Value inputs) {
  auto result =
      CausalConv1dOp::create(builder, at(names.conv), inputs.getType(), convState().getType(),
                             inputs, weight(names.conv + ".weight"), convState(), stateLayer,
                             sequences, positions, weight(names.conv + ".bias"));
  convState() = result.getNext();
  return result.getResult();
}

/// The time steps with their bias, through softplus, and the decay of each.
Value LayerBuilder::decay(Value &steps) {
  steps = SoftplusOp::create(builder, at(names.timeStepBias), steps, weight(names.timeStepBias));
  return DecayOp::create(builder, at(names.rates), steps, weight(names.rates));
}

/// What the convolution reads, by the multipliers of x, B and C.
Value LayerBuilder::scaledParts(Value inputs) {
  const MambaConfig &m = *kind.mamba;
  llvm::ArrayRef<double> factors = llvm::ArrayRef(m.multipliers).slice(1, 3);
  Location loc = at(names.mambaIn + "_xbc");
  if (llvm::all_equal(factors))
    return buildScale(builder, loc, inputs, factors.front());
  int64_t ofGroups = m.groups * m.stateDim;
  return ScalePartsOp::create(builder, loc, inputs.getType(), inputs, factors,
                              llvm::ArrayRef<int64_t>{m.inner(), ofGroups, ofGroups});
}

/// out(norm(silu(gate) * (scan + D x))) with x, B and C made by a convolution, and the scan linear
/// attention with C for q, B for k and dt x for v. The norm may precede the gate or be absent.
Value LayerBuilder::mamba(Value x) {
  const MambaConfig &m = *kind.mamba;
  std::string in = names.mambaIn.str();
  x = buildScale(builder, at(in), x, m.inMultiplier);
  Value gate = linear(x, in + "_gate"), inputs = linear(x, in + "_xbc"), dt = linear(x, in + "_dt");
  gate = buildScale(builder, at(in + "_gate"), gate, m.multipliers.front());
  dt = buildScale(builder, at(in + "_dt"), dt, m.multipliers.back());
  Location loc = at(names.conv);
  Type ofHeads = rowsType(builder, m.inner()), ofGroups = rowsType(builder, m.groups * m.stateDim);
  auto parts = SplitOp::create(builder, loc, TypeRange{ofHeads, ofGroups, ofGroups},
                               SiluOp::create(builder, loc, filtered(scaledParts(inputs))));
  Value values = heads(parts.getResult(0), m.heads, m.headDim, names.conv),
        keys = heads(parts.getResult(1), m.groups, m.stateDim, names.conv),
        queries = heads(parts.getResult(2), m.groups, m.stateDim, names.conv);
  Value decay = this->decay(dt);
  loc = at(mambaModule());
  auto scan =
      LinearAttentionOp::create(builder, loc, values.getType(), scanState().getType(), queries,
                                keys, ScaleHeadsOp::create(builder, loc, values, dt), decay,
                                scanState(), stateLayer, sequences, positions, /*beta=*/Value());
  scanState() = scan.getNext();
  Value skipped = ScaleHeadsOp::create(builder, at(names.skip), values, weight(names.skip));
  Value sum = AddOp::create(builder, at(names.skip), scan.getResult(), skipped);
  Value result = MergeHeadsOp::create(builder, loc, ofHeads, sum);
  loc = at(m.hasNorm ? names.mambaNorm : names.mambaIn);
  auto normalize = [&] {
    Value grouped = heads(result, m.groups, m.inner() / m.groups, names.mambaNorm);
    Value normal = norm(grouped, names.mambaNorm, {.kind = NormKind::Rms, .eps = m.eps});
    result = MergeHeadsOp::create(builder, loc, ofHeads, normal);
  };
  if (m.hasNorm && !m.gatesFirst)
    normalize();
  result = MulOp::create(builder, loc, SiluOp::create(builder, loc, gate), result);
  if (m.hasNorm && m.gatesFirst)
    normalize();
  return buildScale(builder, at(names.mambaOut), linear(result, names.mambaOut), m.outMultiplier);
}

/// out(silu(gate) * norm(scan)) with queries, keys and values made by a convolution, and the scan
/// linear attention by the delta rule over queries and keys of length 1.
Value LayerBuilder::deltaNet(Value x) {
  const DeltaNetConfig &d = *kind.delta;
  Value inputs = linear(x, names.deltaQkv), gate = linear(x, names.deltaGate);
  Value beta = linear(x, names.deltaBeta), steps = linear(x, names.deltaStep);
  Location loc = at(names.conv);
  Type ofKeys = rowsType(builder, d.keys()), ofValues = rowsType(builder, d.values());
  auto parts = SplitOp::create(builder, loc, TypeRange{ofKeys, ofKeys, ofValues},
                               SiluOp::create(builder, loc, filtered(inputs)));
  auto unit = [&](Value rows) -> Value {
    return L2NormOp::create(builder, loc, heads(rows, d.keyHeads, d.keyDim, names.conv),
                            builder.getF64FloatAttr(d.l2Eps));
  };
  Value queries =
      buildScale(builder, loc, unit(parts.getResult(0)), 1 / std::sqrt(double(d.keyDim)));
  Value keys = unit(parts.getResult(1)),
        values = heads(parts.getResult(2), d.valueHeads, d.valueDim, names.conv);
  beta = SigmoidOp::create(builder, at(names.deltaBeta), beta);
  Value decay = this->decay(steps);
  loc = at(deltaModule());
  auto scan =
      LinearAttentionOp::create(builder, loc, values.getType(), states[1].getType(), queries, keys,
                                values, decay, states[1], stateLayer, sequences, positions, beta);
  states[1] = scan.getNext();
  Value normal = norm(scan.getResult(), names.deltaNorm, {.kind = NormKind::Rms, .eps = d.eps});
  Value merged = MergeHeadsOp::create(builder, at(names.deltaNorm), ofValues, normal);
  loc = at(names.deltaGate);
  return linear(MulOp::create(builder, loc, SiluOp::create(builder, loc, gate), merged),
                names.deltaOut);
}

Value LayerBuilder::mix(Value x) {
  if (kind.mamba && kind.hasAttention()) {
    Value scanned = mamba(x);
    return AddOp::create(builder, mixerLocation(), scanned, attention(x));
  }
  return kind.conv ? conv(x) : kind.mamba ? mamba(x) : kind.delta ? deltaNet(x) : attention(x);
}

Location LayerBuilder::mixerLocation() const {
  return kind.conv    ? at(names.convOut)
         : kind.mamba ? at(names.mambaOut)
         : kind.delta ? at(names.deltaOut)
                      : at(attentionModule());
}

/// The stream with the result of a block, through its norm and its multiplier.
Value LayerBuilder::added(Value stream, Value result, llvm::StringRef postNorm, Location loc) {
  if (model.block.postNorms)
    result = norm(result, postNorm, model.norm);
  result = buildScale(builder, loc, result, model.block.residualMultiplier);
  return AddOp::create(builder, loc, stream, result);
}

Value LayerBuilder::activate(Value x, Activation activation, Location loc) {
  Value result;
  forEachActivationOp([&](auto op) {
    if (op.getActivation() == activation)
      result = decltype(op)::create(builder, loc, x);
  });
  return result;
}

Value LayerBuilder::dense(Value x, const llvm::Twine &gate, const llvm::Twine &up,
                          const llvm::Twine &down, const DenseConfig &config) {
  if (!config.gated)
    return linear(activate(linear(x, up), config.activation, at(up)), down);
  Value gated = buildScale(builder, at(gate), linear(x, gate), config.gateMultiplier);
  gated = activate(gated, config.activation, at(gate));
  Value product = MulOp::create(builder, at(up), gated, linear(x, up));
  return buildScale(builder, at(down), linear(product, down), config.downMultiplier);
}

Value LayerBuilder::sparse(Value x, const SparseConfig &config) {
  auto picks = [&](Type element) {
    return RankedTensorType::get({ShapedType::kDynamic, config.expertsPerToken}, element);
  };
  auto grouped = [&](int64_t number) {
    return config.groups == 0 ? IntegerAttr() : builder.getI64IntegerAttr(number);
  };
  auto gate = MoeGateOp::create(
      builder, at(names.router), picks(builder.getF32Type()), picks(builder.getI32Type()), x,
      weight(names.router + ".weight"), weight(names.router + ".bias"),
      config.correctionBias ? weight(names.correctionBias) : Value(),
      ScoringAttr::get(builder.getContext(), config.scoring),
      builder.getI64IntegerAttr(config.expertsPerToken),
      config.normalize ? builder.getUnitAttr() : UnitAttr(), grouped(config.groups),
      grouped(config.topkGroup),
      config.groups == 0 ? GroupScoringAttr()
                         : GroupScoringAttr::get(builder.getContext(), config.groupScoring));
  auto stacked = [&](llvm::StringRef product) {
    return weight(names.expert + "." + product + ".weight");
  };
  auto biases = [&](llvm::StringRef product) {
    return weight(names.expert + "." + product + ".bias");
  };
  const std::optional<ClampConfig> &clamp = config.expert.clamp;
  auto limit = [&](double number) { return builder.getF64FloatAttr(number); };
  Value sum = MoeExpertsOp::create(
      builder, at(names.expert), x.getType(), x, gate.getWeights(), gate.getExperts(),
      stacked(names.expertGate), stacked(names.expertDown), stacked(names.expertUp),
      biases(names.expertGate), biases(names.expertUp), biases(names.expertDown),
      /*residual=*/Value(), ActivationAttr::get(builder.getContext(), config.expert.activation),
      clamp ? limit(clamp->alpha) : FloatAttr(), clamp ? limit(clamp->limit) : FloatAttr(),
      builder.getI64IntegerAttr(config.expert.inner));
  // What the weights would be multiplied with.
  sum = buildScale(builder, at(names.expert), sum, config.multiplier);
  for (int64_t i = 0; i < config.sharedExperts; ++i) {
    std::string expert = sharedExpertName(names, i) + ".";
    Value shared = dense(x, expert + names.expertGate, expert + names.expertUp,
                         expert + names.expertDown, config.shared);
    if (config.sharedGate)
      shared = SigmoidGateOp::create(builder, at(names.sharedExpertGate), shared.getType(), shared,
                                     linear(x, names.sharedExpertGate));
    sum = AddOp::create(builder, at(expert + names.expertDown), sum, shared);
  }
  return sum;
}

Value LayerBuilder::ffn(Value x) {
  if (auto *config = std::get_if<DenseConfig>(&kind.ffn))
    return dense(x, names.gate, names.up, names.down, *config);
  return sparse(x, std::get<SparseConfig>(kind.ffn));
}

void LayerBuilder::build() {
  takeArguments();
  const BlockConfig &block = model.block;
  auto before = [&](Value stream, llvm::StringRef module) {
    return block.preNorms ? norm(stream, module, model.norm) : stream;
  };
  Value entered = before(x, names.attentionNorm);
  Value stream = added(x, mix(entered), names.postAttentionNorm, mixerLocation());
  if (!std::holds_alternative<std::monostate>(kind.ffn)) {
    if (block.parallel != Parallel::SharedNorm)
      entered = before(block.parallel == Parallel::No ? stream : x, names.ffnNorm);
    stream = added(stream, ffn(entered), names.postFfnNorm, at(ffnModule()));
  }
  states.insert(states.begin(), stream);
  func::ReturnOp::create(builder, function.getLoc(), states);
}

} // namespace

func::FuncOp buildLayer(OpBuilder &builder, llvm::StringRef name, const ModelConfig &model,
                        const LayerKind &kind, llvm::ArrayRef<Type> states, bool numbered,
                        llvm::ArrayRef<Type> weightTypes) {
  llvm::SmallVector<Type> results = {rowsType(builder, model.hidden)};
  llvm::append_range(results, states);
  llvm::StringMap<Type> types{{"x", results.front()},
                              {"layer", builder.getIndexType()},
                              {stateLayerName(kind, numbered), builder.getIndexType()}};
  for (auto [stateName, state] : llvm::zip_equal(stateNames(kind), states))
    types[stateName] = state;
  llvm::SmallVector<Type> inputs;
  for (llvm::StringRef argument : layerArguments(kind, numbered))
    inputs.push_back(types.try_emplace(argument, indexRowsType(builder)).first->second);
  llvm::append_range(inputs, weightTypes);
  auto type = builder.getFunctionType(inputs, results);
  Location loc = NameLoc::get(builder.getStringAttr(model.names->layers + ".*"));
  auto function = func::FuncOp::create(builder, loc, name, type);
  function.setPrivate();
  OpBuilder::InsertionGuard guard(builder);
  LayerBuilder(builder, model, kind, numbered, function).build();
  return function;
}

} // namespace mica
