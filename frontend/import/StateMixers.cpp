#include "frontend/import/StateMixers.h"

#include "frontend/import/LayerSignature.h"
#include "ir/Mica/Mica.h"

#include <cmath>

using namespace mlir;

namespace mica {

namespace {

class MixerBuilder : LayerPart {
public:
  explicit MixerBuilder(const LayerPart &layer) : LayerPart(layer) {}

  Value shortConv(Value x);
  Value mamba(Value x);
  Value deltaNet(Value x);

private:
  Value filtered(Value inputs);
  Value decay(Value &steps);
  Value scaledParts(Value inputs);
  Value repeated(Value heads, int64_t times);
  Value &convState() { return state(kConvState); }
  Value &recurrentState() { return state(kRecurrentState); }
};

/// out(c * conv(b * x))
Value MixerBuilder::shortConv(Value x) {
  auto part = [&](const char *name) { return linear(x, names.convIn + name); };
  Value b = part("_b"), c = part("_c"), value = part("_x");
  Location loc = at(names.conv);
  Value inputs = MulOp::create(builder, loc, b, value);
  return linear(MulOp::create(builder, loc, c, filtered(inputs)), names.convOut);
}

/// The causal convolution of `inputs`.
Value MixerBuilder::filtered(Value inputs) {
  auto result =
      CausalConv1dOp::create(builder, at(names.conv), inputs.getType(), convState().getType(),
                             inputs, weight(names.conv + ".weight"), convState(), stateLayer,
                             sequences, positions, weight(names.conv + ".bias"));
  convState() = result.getNext();
  return result.getResult();
}

/// Computes the time steps (softplus with bias) and returns their decay.
Value MixerBuilder::decay(Value &steps) {
  steps = SoftplusOp::create(builder, at(names.dtBias), steps, weight(names.dtBias));
  return DecayOp::create(builder, at(names.aLog), steps, weight(names.aLog));
}

/// The inputs of the convolution, scaled by the multipliers of x, B and C.
Value MixerBuilder::scaledParts(Value inputs) {
  const MambaConfig &m = *kind.mixer<MambaConfig>();
  llvm::ArrayRef<double> factors = llvm::ArrayRef(m.multipliers).slice(1, 3);
  Location loc = at(names.mambaIn + "_xbc");
  if (llvm::all_equal(factors))
    return buildScale(builder, loc, inputs, factors.front());
  int64_t ofGroups = m.groups * m.stateDim;
  return ScalePartsOp::create(builder, loc, inputs.getType(), inputs, factors,
                              llvm::ArrayRef<int64_t>{m.inner(), ofGroups, ofGroups});
}

/// out(norm(silu(gate) * (scan + D x))) where x, B and C are results of a convolution, and the scan
/// is linear attention with C for q, B for k and dt x for v. The norm may precede the gate or be
/// absent.
Value MixerBuilder::mamba(Value x) {
  const MambaConfig &m = *kind.mixer<MambaConfig>();
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
  loc = at(parentOf(names.mambaIn));
  auto scan = LinearAttentionOp::create(
      builder, loc, values.getType(), recurrentState().getType(), queries, keys,
      ScaleHeadsOp::create(builder, loc, values, dt), decay, recurrentState(), stateLayer,
      sequences, positions, /*beta=*/Value());
  recurrentState() = scan.getNext();
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

/// Repeats all heads `times` times: copy after copy.
Value MixerBuilder::repeated(Value heads, int64_t times) {
  llvm::ArrayRef<int64_t> shape = cast<RankedTensorType>(heads.getType()).getShape();
  int64_t count = shape[1], size = shape[2], width = count * size;
  Location loc = heads.getLoc();
  auto asOne = [&](int64_t copies) {
    return RankedTensorType::get({ShapedType::kDynamic, 1, copies * width}, builder.getF32Type());
  };
  Value rows = MergeHeadsOp::create(builder, loc, rowsType(builder, width), heads);
  Value one = SplitHeadsOp::create(builder, loc, asOne(1), rows), all = one;
  for (int64_t copies = 2; copies <= times; ++copies)
    all = ConcatHeadsOp::create(builder, loc, asOne(copies), all, one);
  rows = MergeHeadsOp::create(builder, loc, rowsType(builder, times * width), all);
  return this->heads(rows, times * count, size, names.conv);
}

/// out(silu(gate) * norm(scan)), where queries, keys and values are results of a convolution, and
/// the scan is linear attention with the delta rule on L2-normalized queries and keys.
Value MixerBuilder::deltaNet(Value x) {
  const DeltaNetConfig &d = *kind.mixer<DeltaNetConfig>();
  Value inputs = linear(x, names.deltaQkv), gate = linear(x, names.deltaGate);
  Value beta = linear(x, names.deltaBeta), steps = linear(x, names.deltaAlpha);
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
  if (d.headsInterleaved && d.valueHeads != d.keyHeads) {
    queries = repeated(queries, d.valueHeads / d.keyHeads);
    keys = repeated(keys, d.valueHeads / d.keyHeads);
  }
  beta = SigmoidOp::create(builder, at(names.deltaBeta), beta);
  Value decay = this->decay(steps);
  loc = at(parentOf(names.deltaOut));
  auto scan = LinearAttentionOp::create(builder, loc, values.getType(), recurrentState().getType(),
                                        queries, keys, values, decay, recurrentState(), stateLayer,
                                        sequences, positions, beta);
  recurrentState() = scan.getNext();
  Value normal = norm(scan.getResult(), names.deltaNorm, {.kind = NormKind::Rms, .eps = d.eps});
  Value merged = MergeHeadsOp::create(builder, at(names.deltaNorm), ofValues, normal);
  loc = at(names.deltaGate);
  return linear(MulOp::create(builder, loc, SiluOp::create(builder, loc, gate), merged),
                names.deltaOut);
}

} // namespace

Value buildShortConv(const LayerPart &layer, Value x) { return MixerBuilder(layer).shortConv(x); }
Value buildMamba(const LayerPart &layer, Value x) { return MixerBuilder(layer).mamba(x); }
Value buildDeltaNet(const LayerPart &layer, Value x) { return MixerBuilder(layer).deltaNet(x); }

} // namespace mica
