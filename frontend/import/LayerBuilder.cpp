#include "frontend/import/LayerBuilder.h"

#include "frontend/import/AttentionBuilder.h"
#include "frontend/import/BuildOps.h"
#include "frontend/import/FeedForwardBuilder.h"
#include "frontend/import/LayerPart.h"
#include "frontend/import/LayerSignature.h"
#include "frontend/import/StateMixers.h"
#include "frontend/import/WeightPlan.h"
#include "ir/Mica/Mica.h"

using namespace mlir;

namespace mica {

namespace {

class LayerBuilder : LayerPart {
public:
  using LayerPart::LayerPart;

  void build(func::FuncOp function);

private:
  Value buildMixer(Value x);
  Location mixerLocation() const;
  Value added(Value stream, Value result, llvm::StringRef postNorm, Location loc);
  Value addPerLayer(Value stream);
};

Value LayerBuilder::buildMixer(Value x) {
  Value mixed = std::visit(
      llvm::makeVisitor([](std::monostate) { return Value(); },
                        [&](const ShortConvConfig &) { return buildShortConv(*this, x); },
                        [&](const MambaConfig &) { return buildMamba(*this, x); },
                        [&](const DeltaNetConfig &) { return buildDeltaNet(*this, x); }),
      kind.stateMixer);
  if (!kind.hasAttention())
    return mixed;
  Value attended = buildAttention(*this, x);
  return mixed ? AddOp::create(builder, mixerLocation(), mixed, attended).getResult() : attended;
}

Location LayerBuilder::mixerLocation() const {
  return std::visit(llvm::makeVisitor([&](std::monostate) { return at(attentionModule()); },
                                      [&](const ShortConvConfig &) { return at(names.convOut); },
                                      [&](const MambaConfig &) { return at(names.mambaOut); },
                                      [&](const DeltaNetConfig &) { return at(names.deltaOut); }),
                    kind.stateMixer);
}

/// Adds the result of a block to the stream, after its norm and multiplier.
Value LayerBuilder::added(Value stream, Value result, llvm::StringRef postNorm, Location loc) {
  if (model.block.postNorms)
    result = norm(result, postNorm, model.norm);
  result = buildScale(builder, loc, result, model.block.residualMultiplier);
  return AddOp::create(builder, loc, stream, result);
}

/// Adds the layer's embedding of the token, gated by the stream.
Value LayerBuilder::addPerLayer(Value stream) {
  Value gate = activate(linear(stream, names.perLayerGate), kind.perLayer->activation,
                        at(names.perLayerGate));
  Value own =
      SelectHeadOp::create(builder, at(names.perLayerGate), rowsType(builder, kind.perLayer->dim),
                           values.perLayer, values.layer);
  Value gated = MulOp::create(builder, at(names.perLayerGate), gate, own);
  Value result = norm(linear(gated, names.perLayerOut), names.postPerLayerNorm, model.norm);
  return AddOp::create(builder, at(names.perLayerOut), stream, result);
}

void LayerBuilder::build(func::FuncOp function) {
  Value x = values.x;
  const BlockConfig &block = model.block;
  auto before = [&](Value stream, llvm::StringRef module) {
    return block.preNorms ? norm(stream, module, model.norm) : stream;
  };
  Value entered = before(x, names.attentionNorm), stream = x;
  if (kind.mixes)
    stream = added(x, buildMixer(entered), names.postAttentionNorm, mixerLocation());
  if (!std::holds_alternative<std::monostate>(kind.ffn)) {
    if (kind.mixes && block.parallel != Parallel::SharedNorm)
      entered = before(block.parallel == Parallel::No ? stream : x, names.ffnNorm);
    stream = added(stream, buildFeedForward(*this, entered, stream), names.postFfnNorm,
                   at(parentOf(names.up)));
  }
  if (kind.perLayer)
    stream = addPerLayer(stream);
  if (block.layerScalar) {
    Value scaled = ScaleHeadsOp::create(builder, at(names.layerScalar),
                                        heads(stream, 1, model.hidden, names.layerScalar),
                                        weight(names.layerScalar));
    stream = MergeHeadsOp::create(builder, at(names.layerScalar), stream.getType(), scaled);
  }
  llvm::SmallVector<Value> results = {stream};
  llvm::append_range(results, values.states);
  func::ReturnOp::create(builder, function.getLoc(), results);
}

} // namespace

/// Adds the entry block, with names for its arguments, and inserts ops there.
static LayerValues takeArguments(OpBuilder &builder, const ModelConfig &model,
                                 const LayerType &kind, bool numbered, func::FuncOp function) {
  LayerValues values;
  Block *body = function.addEntryBlock();
  llvm::SmallVector<llvm::StringRef> argumentNames = layerArguments(kind, numbered);
  nameArguments(function, argumentNames);
  llvm::StringMap<Value> given;
  for (auto [name, argument] : llvm::zip(argumentNames, body->getArguments()))
    given[name] = argument;
  values.x = given.at("x");
  values.layer = given.at("layer");
  for (const LayerState &state : layerStates(kind))
    values.states.push_back(given.at(state.name));
  if (kind.mixes) {
    values.stateLayer = given.at(stateLayerName(kind, numbered));
    values.sequences = given.at("sequences");
    values.positions = given.at("positions");
  }
  values.lengths = given.lookup("lengths");
  values.perLayer = given.lookup(kPerLayerInputs);
  for (auto [weight, argument] : llvm::zip_equal(
           layerWeights(model, kind), body->getArguments().drop_front(argumentNames.size()))) {
    values.weights[weight.name] = argument;
    argument.setLoc(layerLocation(builder, *model.names, weight.name));
  }
  builder.setInsertionPointToStart(body);
  return values;
}

func::FuncOp buildLayer(OpBuilder &builder, llvm::StringRef name, const ModelConfig &model,
                        const LayerType &kind, llvm::ArrayRef<Type> states, bool numbered,
                        llvm::ArrayRef<Type> weightTypes) {
  llvm::SmallVector<Type> results = {rowsType(builder, model.hidden)};
  llvm::append_range(results, states);
  llvm::StringMap<Type> types{{"x", results.front()},
                              {"layer", builder.getIndexType()},
                              {stateLayerName(kind, numbered), builder.getIndexType()}};
  for (auto [state, stateType] : llvm::zip_equal(layerStates(kind), states))
    types[state.name] = stateType;
  if (kind.perLayer)
    types[kPerLayerInputs] = perLayerInputsType(builder, model, *kind.perLayer);
  llvm::SmallVector<Type> inputs;
  for (llvm::StringRef argument : layerArguments(kind, numbered))
    inputs.push_back(types.try_emplace(argument, indexRowsType(builder)).first->second);
  llvm::append_range(inputs, weightTypes);
  auto type = builder.getFunctionType(inputs, results);
  Location loc = NameLoc::get(builder.getStringAttr(model.names->layers + ".*"));
  auto function = func::FuncOp::create(builder, loc, name, type);
  function.setPrivate();
  OpBuilder::InsertionGuard guard(builder);
  LayerValues values = takeArguments(builder, model, kind, numbered, function);
  LayerBuilder(builder, model, kind, values).build(function);
  return function;
}

} // namespace mica
