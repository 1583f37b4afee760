#include "frontend/import/FeedForwardBuilder.h"

#include "frontend/import/WeightPlan.h"
#include "ir/Mica/Activations.h"

using namespace mlir;

namespace mica {

namespace {

class FeedForwardBuilder : LayerPart {
public:
  explicit FeedForwardBuilder(const LayerPart &layer) : LayerPart(layer) {}

  Value build(Value x);

private:
  Value dense(Value x, const llvm::Twine &gate, const llvm::Twine &up, const llvm::Twine &down,
              const DenseConfig &config);
  Value sparse(Value x, const SparseConfig &config);
  Value activate(Value x, Activation activation, Location loc);
};

Value FeedForwardBuilder::activate(Value x, Activation activation, Location loc) {
  Value result;
  forEachActivationOp([&](auto op) {
    if (op.getActivation() == activation)
      result = decltype(op)::create(builder, loc, x);
  });
  return result;
}

Value FeedForwardBuilder::dense(Value x, const llvm::Twine &gate, const llvm::Twine &up,
                                const llvm::Twine &down, const DenseConfig &config) {
  if (!config.gated)
    return linear(activate(linear(x, up), config.activation, at(up)), down);
  Value gated = buildScale(builder, at(gate), linear(x, gate), config.gateMultiplier);
  gated = activate(gated, config.activation, at(gate));
  Value product = MulOp::create(builder, at(up), gated, linear(x, up));
  return buildScale(builder, at(down), linear(product, down), config.downMultiplier);
}

Value FeedForwardBuilder::sparse(Value x, const SparseConfig &config) {
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

Value FeedForwardBuilder::build(Value x) {
  if (auto *config = std::get_if<DenseConfig>(&kind.ffn))
    return dense(x, names.gate, names.up, names.down, *config);
  return sparse(x, std::get<SparseConfig>(kind.ffn));
}

} // namespace

Value buildFeedForward(const LayerPart &layer, Value x) {
  return FeedForwardBuilder(layer).build(x);
}

} // namespace mica
