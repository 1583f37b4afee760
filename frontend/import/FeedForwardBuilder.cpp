#include "frontend/import/FeedForwardBuilder.h"

#include "frontend/import/WeightPlan.h"
#include "ir/Mica/Mica.h"

#include <cmath>

using namespace mlir;

namespace mica {

namespace {

class FeedForwardBuilder : LayerPart {
public:
  explicit FeedForwardBuilder(const LayerPart &layer) : LayerPart(layer) {}

  Value build(Value x, Value stream);

private:
  Value dense(Value x, const llvm::Twine &gate, const llvm::Twine &up, const llvm::Twine &down,
              const DenseConfig &config);
  Value sparse(Value x, Value routed, const SparseConfig &config);
  Value denseAndSparse(Value x, Value stream, const SparseConfig &config);
};

Value FeedForwardBuilder::dense(Value x, const llvm::Twine &gate, const llvm::Twine &up,
                                const llvm::Twine &down, const DenseConfig &config) {
  if (!config.gated)
    return linear(activate(linear(x, up), config.activation, at(up)), down);
  Value gated = buildScale(builder, at(gate), linear(x, gate), config.gateMultiplier);
  gated = activate(gated, config.activation, at(gate));
  Value product = MulOp::create(builder, at(up), gated, linear(x, up));
  return buildScale(builder, at(down), linear(product, down), config.downMultiplier);
}

/// The experts of `x` that the router selects for `routed`, the same rows unless the router has
/// another norm than the experts.
Value FeedForwardBuilder::sparse(Value x, Value routed, const SparseConfig &config) {
  auto picks = [&](Type element) {
    return RankedTensorType::get({ShapedType::kDynamic, config.expertsPerToken}, element);
  };
  auto grouped = [&](int64_t number) {
    return config.groups == 0 ? IntegerAttr() : builder.getI64IntegerAttr(number);
  };
  auto gate = MoeGateOp::create(
      builder, at(names.router), picks(builder.getF32Type()), picks(builder.getI32Type()), routed,
      weight(names.router + ".weight"), weight(names.router + ".bias"),
      config.correctionBias ? weight(names.correctionBias) : Value(), weight(names.expertScales),
      ScoringAttr::get(builder.getContext(), config.scoring),
      builder.getI64IntegerAttr(config.expertsPerToken),
      config.normalize ? builder.getUnitAttr() : UnitAttr(),
      config.normalize && config.normalizeEps ? builder.getF64FloatAttr(*config.normalizeEps)
                                              : FloatAttr(),
      grouped(config.groups), grouped(config.topkGroup),
      config.groups == 0 ? GroupScoringAttr()
                         : GroupScoringAttr::get(builder.getContext(), config.groupScoring));
  auto stacked = [&](llvm::StringRef product) {
    return weight(names.expert + "." + product + ".weight");
  };
  auto biases = [&](llvm::StringRef product) {
    return weight(names.expert + "." + product + ".bias");
  };
  // relu(u)^2 is relu(u) u, so that up is its own gate.
  Activation activation = config.expert.gated ? config.expert.activation : Activation::Relu;
  Value read = config.latent == 0 ? x : linear(x, names.expertsIn);
  const std::optional<ClampConfig> &clamp = config.expert.clamp;
  auto limit = [&](double number) { return builder.getF64FloatAttr(number); };
  Value sum = MoeExpertsOp::create(
      builder, at(names.expert), read.getType(), read, gate.getWeights(), gate.getExperts(),
      stacked(names.expertGate), stacked(names.expertDown), stacked(names.expertUp),
      biases(names.expertGate), biases(names.expertUp), biases(names.expertDown),
      /*residual=*/Value(), ActivationAttr::get(builder.getContext(), activation),
      clamp ? limit(clamp->alpha) : FloatAttr(), clamp ? limit(clamp->limit) : FloatAttr(),
      builder.getI64IntegerAttr(config.expert.inner));
  // The multiplier of the expert weights, applied to the sum.
  sum = buildScale(builder, at(names.expert), sum, config.multiplier);
  if (config.latent != 0)
    sum = linear(sum, names.expertsOut);
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

/// norm(dense(x)) + norm(sparse(norm(stream)))
Value FeedForwardBuilder::denseAndSparse(Value x, Value stream, const SparseConfig &config) {
  Value ofDense = norm(dense(x, names.gate, names.up, names.down, *config.dense),
                       names.postDenseNorm, model.norm);
  Value routed = buildNorm(builder, at(names.routerNorm), stream, weight(names.routerNorm), Value(),
                           model.norm);
  routed = buildScale(builder, at(names.routerNorm), routed,
                      1 / std::sqrt(static_cast<double>(model.hidden)));
  Value entered = norm(stream, names.expertsNorm, model.norm);
  Value ofExperts = norm(sparse(entered, routed, config), names.postExpertsNorm, model.norm);
  return AddOp::create(builder, at(names.expert), ofDense, ofExperts);
}

Value FeedForwardBuilder::build(Value x, Value stream) {
  if (auto *config = std::get_if<DenseConfig>(&kind.ffn))
    return dense(x, names.gate, names.up, names.down, *config);
  const auto &config = std::get<SparseConfig>(kind.ffn);
  return config.dense ? denseAndSparse(x, stream, config) : sparse(x, x, config);
}

} // namespace

Value buildFeedForward(const LayerPart &layer, Value x, Value stream) {
  return FeedForwardBuilder(layer).build(x, stream);
}

} // namespace mica
