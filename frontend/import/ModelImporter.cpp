#include "frontend/import/ModelImporter.h"
#include "frontend/import/BuildOps.h"

#include "frontend/import/LayerBuilder.h"
#include "frontend/import/LayerSignature.h"
#include "ir/Mica/EntrySignature.h"
#include "ir/Mica/ModelDescription.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>
#include <map>
#include <tuple>

using namespace mlir;

namespace mica {
namespace {

class ModelImporter {
public:
  ModelImporter(MLIRContext &context, const ModelConfig &model, const WeightPlan &plan)
      : builder(&context), model(model), plan(plan) {}

  OwningOpRef<ModuleOp> import(llvm::StringRef name);

private:
  Type elementOf(StoredType type);
  RankedTensorType typeOf(const PlannedWeight &weight);
  void declare(const PlannedWeight &weight);
  void declareAll();
  void buildLayers();
  func::FuncOp buildEntry(llvm::StringRef name);
  void buildMain();
  void buildDraft();
  Value get(const PlannedWeight &weight);
  Value callLayer(Location loc, func::FuncOp function, const LayerType &kind, bool numbered,
                  llvm::StringMap<Value> given, llvm::ArrayRef<PlannedWeight> weights,
                  llvm::MutableArrayRef<Value> states);
  Value callLayers(Value x, const EntrySignature &main, llvm::MutableArrayRef<Value> states);
  Value embed(const EntrySignature &main, Value table);
  Value normBeforeHead(Value x, const PlannedWeight &norm);
  Value projectOut(Value x, const PlannedWeight &norm, Value outputs, Value table);
  DictionaryAttr modelAttr();
  DictionaryAttr generationAttr();
  /// The module of a weight: its name without the last component.
  static llvm::StringRef moduleOf(const PlannedWeight &weight) {
    return llvm::StringRef(weight.symbol).rsplit('.').first;
  }
  Location at(llvm::StringRef name) { return NameLoc::get(builder.getStringAttr(name)); }

  /// Layers that share states: a pair of caches if their keys and values have the same shapes and
  /// windows, a state of convolution inputs if their convolutions have the same filters, and both
  /// kinds of state for Mamba or delta nets.
  struct StateGroup {
    std::tuple<llvm::StringRef, int64_t, int64_t, int64_t, int64_t> shape;
    const LayerType *kind; ///< one of those that share it
    int64_t layers = 0;
    size_t first = 0; ///< index of its first state in the states of the model
  };
  static decltype(StateGroup::shape) stateShapeOf(const LayerType &kind) {
    const AttentionConfig &a = kind.attention;
    using Shape = decltype(StateGroup::shape);
    return std::visit(llvm::makeVisitor(
                          [&](std::monostate) {
                            return Shape("attention", a.kvHeads, a.headDim, a.valueDim,
                                         a.window.value_or(0));
                          },
                          [](const ShortConvConfig &c) { return Shape("conv", c.taps, 0, 0, 0); },
                          // If a layer has attention beside it, all layers do.
                          [](const MambaConfig &m) {
                            return Shape("mamba", m.taps, m.channels(), m.heads, m.stateDim);
                          },
                          [](const DeltaNetConfig &d) {
                            return Shape("delta", d.taps, d.channels(), d.valueHeads, d.keyDim);
                          }),
                      kind.stateMixer);
  }
  const LayerType &layerTypeOf(size_t layer) const { return model.layerTypes[model.layers[layer]]; }
  StateGroup &groupOf(const LayerType &kind);
  /// Those of the model, and of its multi-token prediction head.
  llvm::SmallVector<StateGroup> allGroups() const;
  void planStates();
  /// Whether the index of a layer in its states may differ from that in the model.
  bool isNumbered() const {
    return stateGroups.size() > 1 || llvm::any_of(model.layerTypes, [](const LayerType &kind) {
             return kind.attention.sharesCache;
           });
  }
  Value perLayerInputs(const EntrySignature &main, Value x);
  /// In the order of layerStates.
  llvm::SmallVector<Type> stateTypes(const StateGroup &group);

  OpBuilder builder;
  const ModelConfig &model;
  const WeightPlan &plan;
  std::vector<StateGroup> stateGroups; // in the order of their first layers
  std::vector<int64_t> stateLayers;    // per layer, its index in its states
  std::vector<func::FuncOp> functions; // per layer
};

Type ModelImporter::elementOf(StoredType type) {
  return type == StoredType::F32    ? Type(builder.getF32Type())
         : type == StoredType::BF16 ? Type(builder.getBF16Type())
                                    : Type(builder.getF16Type());
}

RankedTensorType ModelImporter::typeOf(const PlannedWeight &weight) {
  return RankedTensorType::get(weight.shape, elementOf(weight.type));
}

ModelImporter::StateGroup &ModelImporter::groupOf(const LayerType &kind) {
  return *llvm::find_if(stateGroups,
                        [&](const StateGroup &group) { return group.shape == stateShapeOf(kind); });
}

llvm::SmallVector<ModelImporter::StateGroup> ModelImporter::allGroups() const {
  llvm::SmallVector<StateGroup> groups(stateGroups.begin(), stateGroups.end());
  if (plan.mtp)
    groups.push_back({{}, mtpLayerType(model), 1});
  return groups;
}

void ModelImporter::planStates() {
  size_t states = 0;
  for (size_t layer = 0; layer < model.layers.size(); ++layer) {
    const LayerType &kind = layerTypeOf(layer);
    if (!kind.mixes) {
      stateLayers.push_back(0); // unused
      continue;
    }
    if (llvm::none_of(stateGroups,
                      [&](const StateGroup &group) { return group.shape == stateShapeOf(kind); })) {
      stateGroups.push_back({stateShapeOf(kind), &kind, 0, states});
      states += layerStates(kind).size();
    }
    // A layer without caches reads those of the last layer that has some.
    int64_t &layers = groupOf(kind).layers;
    stateLayers.push_back(kind.attention.sharesCache ? layers - 1 : layers++);
  }
}

llvm::SmallVector<Type> ModelImporter::stateTypes(const StateGroup &group) {
  return llvm::map_to_vector(layerStates(*group.kind), [&](const LayerState &state) {
    return state.type(builder.getContext(), *group.kind, group.layers, model.hidden);
  });
}

void ModelImporter::declare(const PlannedWeight &weight) {
  ArrayAttr sources;
  ComposeAttr compose;
  if (weight.stacked || weight.sources.size() > 1)
    compose =
        ComposeAttr::get(builder.getContext(), weight.stacked ? Compose::Stack : Compose::Concat);
  const TensorPart &first = weight.sources.front();
  if (weight.stacked || !first.isWhole() || first.tensor != weight.symbol)
    sources =
        builder.getArrayAttr(llvm::map_to_vector(weight.sources, [&](const TensorPart &source) {
          return source.source(builder.getContext());
        }));
  TypeAttr stored;
  if (weight.blocks)
    stored = TypeAttr::get(BlockType::get(builder.getContext(), weight.blocks));
  WeightOp::create(builder, at(weight.symbol), builder.getStringAttr(weight.symbol),
                   TypeAttr::get(typeOf(weight)), sources, compose, builder.getI64IntegerAttr(1),
                   IntegerAttr(), IntegerAttr(), stored, ShardAttr());
}

void ModelImporter::declareAll() {
  declare(plan.embedding);
  for (const std::optional<PlannedWeight> &weight :
       {plan.positions, plan.embeddingNorm, plan.embeddingNormBias})
    if (weight)
      declare(*weight);
  for (const std::vector<PlannedWeight> &layer : plan.layers)
    for (const PlannedWeight &weight : layer)
      declare(weight);
  if (plan.perLayer)
    for (const PlannedWeight *weight :
         {&plan.perLayer->table, &plan.perLayer->projection, &plan.perLayer->norm})
      declare(*weight);
  declare(plan.finalNorm);
  if (plan.finalNormBias)
    declare(*plan.finalNormBias);
  if (plan.head)
    declare(*plan.head);
  if (plan.mtp)
    for (const PlannedWeight *weight : allWeightsOfHead(*plan.mtp))
      declare(*weight);
}

/// Builds one function for all layers with the same structure and types of weights.
void ModelImporter::buildLayers() {
  using Form = std::pair<StoredType, const BlockFormat *>;
  std::map<std::pair<unsigned, std::vector<Form>>, func::FuncOp> built;
  std::vector<unsigned> functionsOfType(model.layerTypes.size());
  for (auto [kind, weights] : llvm::zip_equal(model.layers, plan.layers)) {
    std::vector<Form> stored;
    llvm::SmallVector<Type> types;
    for (const PlannedWeight &weight : weights) {
      stored.emplace_back(weight.type, weight.blocks);
      types.push_back(typeOf(weight));
    }
    func::FuncOp &function = built[{kind, stored}];
    if (!function) {
      const LayerType &structure = model.layerTypes[kind];
      std::string name = structure.name + "_layer";
      if (unsigned number = functionsOfType[kind]++)
        name += "_" + std::to_string(number);
      llvm::SmallVector<Type> states;
      if (structure.mixes)
        states = stateTypes(groupOf(structure));
      function = buildLayer(builder, name, model, structure, states, isNumbered(), types);
    }
    functions.push_back(function);
  }
}

Value ModelImporter::get(const PlannedWeight &weight) {
  return GetWeightOp::create(builder, at(weight.symbol), typeOf(weight), weight.symbol);
}

/// Calls the function of a layer with the values that it takes, by their names in layerArguments,
/// and `states`, which are updated. Returns the rows.
Value ModelImporter::callLayer(Location loc, func::FuncOp function, const LayerType &kind,
                               bool numbered, llvm::StringMap<Value> given,
                               llvm::ArrayRef<PlannedWeight> weights,
                               llvm::MutableArrayRef<Value> states) {
  for (auto [state, value] : llvm::zip_equal(layerStates(kind), states))
    given[state.name] = value;
  llvm::SmallVector<Value> operands;
  for (llvm::StringRef name : layerArguments(kind, numbered))
    operands.push_back(given.at(name));
  for (const PlannedWeight &weight : weights)
    operands.push_back(get(weight));
  auto call = func::CallOp::create(builder, loc, function, operands);
  llvm::copy(call.getResults().drop_front(), states.begin());
  return call.getResult(0);
}

Value ModelImporter::callLayers(Value x, const EntrySignature &main,
                                llvm::MutableArrayRef<Value> states) {
  Value perLayer = plan.perLayer ? perLayerInputs(main, x) : Value();
  bool numbered = isNumbered();
  for (auto [index, function] : llvm::enumerate(functions)) {
    Location loc = at((model.names->layers + "." + llvm::Twine(index)).str());
    const LayerType &kind = layerTypeOf(index);
    auto own = states.slice(kind.mixes ? groupOf(kind).first : 0, layerStates(kind).size());
    llvm::StringMap<Value> given{{"x", x},
                                 {"layer", arith::ConstantIndexOp::create(builder, loc, index)},
                                 {"sequences", main.argument(EntryRole::Sequences)},
                                 {"positions", main.argument(EntryRole::Positions)},
                                 {"lengths", main.argument(EntryRole::Lengths)},
                                 {kPerLayerInputs, perLayer}};
    if (numbered)
      given[stateLayerName(kind, numbered)] =
          arith::ConstantIndexOp::create(builder, loc, stateLayers[index]);
    x = callLayer(loc, function, kind, numbered, given, plan.layers[index], own);
  }
  return x;
}

/// (norm(projection(x)) + table[token]) / sqrt(2), where `x` are the embeddings: for every row
/// those of all layers. Projection and table are scaled by 1 / sqrt(C) and by the root of their
/// size.
Value ModelImporter::perLayerInputs(const EntrySignature &main, Value x) {
  const PerLayerWeights &weights = *plan.perLayer;
  const PerLayerConfig &config = *model.layerTypes.front().perLayer;
  auto inputs = perLayerInputsType(builder, model, config);
  Type rows = rowsType(builder, inputs.getDimSize(1) * config.dim);
  auto split = [&](Location loc, Value all) {
    return SplitHeadsOp::create(builder, loc, inputs, all).getResult();
  };
  Location loc = at(model.names->perLayerTable);
  Value gathered =
      EmbeddingOp::create(builder, loc, rows, main.argument(EntryRole::Tokens), get(weights.table));
  gathered = buildScale(builder, loc, gathered, std::sqrt(static_cast<double>(config.dim)));
  loc = at(model.names->perLayerProjection);
  Value projected = LinearOp::create(builder, loc, rows, x, get(weights.projection),
                                     /*bias=*/Value(), /*residual=*/Value(), KernelKindAttr());
  projected = buildScale(builder, loc, projected, 1 / std::sqrt(static_cast<double>(model.hidden)));
  loc = at(model.names->perLayerNorm);
  Value normed =
      buildNorm(builder, loc, split(loc, projected), get(weights.norm), Value(), model.norm);
  Value sum = AddOp::create(builder, loc, normed, split(loc, gathered));
  return buildScale(builder, loc, sum, std::sqrt(0.5));
}

/// The norm before the head, which a multi-token prediction head replaces.
Value ModelImporter::normBeforeHead(Value x, const PlannedWeight &norm) {
  Value bias = plan.finalNormBias ? get(*plan.finalNormBias) : Value();
  return buildNorm(builder, at(moduleOf(norm)), x, get(norm), bias, model.norm);
}

Value ModelImporter::projectOut(Value x, const PlannedWeight &norm, Value outputs, Value table) {
  const NamingTable &names = *model.names;
  Value chosen = SelectRowsOp::create(builder, at(moduleOf(norm)), x.getType(), x, outputs);
  Value normed = normBeforeHead(chosen, norm);
  Value head = plan.head ? get(*plan.head) : table;
  Value logits = LmHeadOp::create(builder, at(names.head), rowsType(builder, model.vocab), normed,
                                  head, KernelKindAttr());
  logits = buildScale(builder, at(names.head), logits, model.logitMultiplier);
  if (model.logitSoftcap)
    logits = SoftcapOp::create(builder, at(names.head), logits.getType(), logits,
                               builder.getF64FloatAttr(*model.logitSoftcap));
  return logits;
}

/// The token embeddings, with position embeddings if the model has them.
Value ModelImporter::embed(const EntrySignature &main, Value table) {
  Location loc = at(model.names->embedding);
  Type rows = rowsType(builder, model.hidden);
  Value x = EmbeddingOp::create(builder, loc, rows, main.argument(EntryRole::Tokens), table);
  x = buildScale(builder, loc, x, model.embeddingMultiplier);
  Value positions = main.argument(EntryRole::Positions), added;
  if (plan.positions) {
    loc = at(model.names->positions);
    added = EmbeddingOp::create(builder, loc, rows, positions, get(*plan.positions));
  } else if (model.sinusoidOffset) {
    added = SinusoidOp::create(
        builder, loc, rows, positions, builder.getI64IntegerAttr(*model.sinusoidOffset),
        model.paddingIdx ? builder.getI64IntegerAttr(*model.paddingIdx) : IntegerAttr());
  }
  if (added)
    x = AddOp::create(builder, loc, x, added);
  if (!plan.embeddingNorm)
    return x;
  Value bias = plan.embeddingNormBias ? get(*plan.embeddingNormBias) : Value();
  return buildNorm(builder, at(model.names->embeddingNorm), x, get(*plan.embeddingNorm), bias,
                   model.norm);
}

/// `name`(tokens, sequences, positions, logit_indices, k_cache, v_cache, k_cache_1...) -> (logits,
/// k_cache, v_cache...), with lengths before the states if a rope depends on them, and hidden after
/// them if there is a multi-token prediction head.
func::FuncOp ModelImporter::buildEntry(llvm::StringRef name) {
  Type indices = indexRowsType(builder);
  llvm::SmallVector<Type> states;
  llvm::SmallVector<EntryRole> roles = {EntryRole::Tokens, EntryRole::Sequences,
                                        EntryRole::Positions, EntryRole::LogitIndices};
  if (llvm::any_of(model.layerTypes, followsLength))
    roles.push_back(EntryRole::Lengths);
  llvm::SmallVector<Type> inputs(roles.size(), indices), results{rowsType(builder, model.vocab)};
  auto argumentNames =
      llvm::map_to_vector(roles, [](EntryRole role) { return std::string(infoOf(role).name); });
  llvm::StringMap<unsigned> counts;
  for (const StateGroup &group : allGroups()) {
    llvm::append_range(states, stateTypes(group));
    for (const LayerState &state : layerStates(*group.kind)) {
      llvm::StringRef name = state.name;
      unsigned count = counts[name]++;
      argumentNames.push_back((count == 0 ? name : name + "_" + llvm::Twine(count)).str());
    }
  }
  roles.append(states.size(), EntryRole::Cache);
  llvm::append_range(inputs, states);
  llvm::append_range(results, states);
  if (plan.mtp) {
    roles.push_back(EntryRole::Hidden);
    argumentNames.push_back("hidden");
    inputs.push_back(rowsType(builder, model.hidden));
    results.push_back(inputs.back());
  }
  auto type = builder.getFunctionType(inputs, results);
  auto entry = func::FuncOp::create(builder, at("model"), name, type);
  EntrySignature signature(entry);
  for (auto [index, role] : llvm::enumerate(roles))
    signature.setArgumentRole(index, role);
  signature.setResultRole(0, EntryRole::Logits);
  for (size_t state = 1; state <= states.size(); ++state)
    signature.setResultRole(state, EntryRole::Cache);
  if (plan.mtp)
    signature.setResultRole(states.size() + 1, EntryRole::Hidden);
  entry.addEntryBlock();
  nameArguments(entry, llvm::to_vector_of<llvm::StringRef>(argumentNames));
  return entry;
}

/// A step of the model. For a multi-token prediction head, it returns the normalized rows whose
/// logits the head computes.
void ModelImporter::buildMain() {
  func::FuncOp main = buildEntry("main");
  EntrySignature signature(main);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&main.getBody().front());
  Value table = get(plan.embedding);
  Value x = embed(signature, table);
  llvm::SmallVector<Value> returned = llvm::to_vector_of<Value>(signature.states());
  x = callLayers(x, signature, returned);
  returned.insert(returned.begin(), projectOut(x, plan.finalNorm,
                                               signature.argument(EntryRole::LogitIndices), table));
  if (plan.mtp)
    returned.push_back(normBeforeHead(x, plan.finalNorm));
  func::ReturnOp::create(builder, main.getLoc(), returned);
}

/// @draft, a step of the multi-token prediction head: with the hidden state of position p and the
/// token at p + 1, a row at position p of its cache, the logits of p + 2, and the hidden state with
/// which the head may continue. Other states are returned as they are.
void ModelImporter::buildDraft() {
  const MtpWeights &mtp = *plan.mtp;
  const MtpModules &modules = *model.names->mtp;
  const LayerType &kind = *mtpLayerType(model);
  ModelConfig head = model;
  head.names = &*model.mtpNames;
  StringAttr role = builder.getStringAttr(kDraftRole);
  llvm::SmallVector<Type> weightTypes = llvm::map_to_vector(
      mtp.layer, [&](const PlannedWeight &weight) -> Type { return typeOf(weight); });
  func::FuncOp layer = buildLayer(builder, "mtp_layer", head, kind, stateTypes(allGroups().back()),
                                  /*numbered=*/true, weightTypes);
  func::FuncOp draft = buildEntry("draft");
  for (func::FuncOp function : {layer, draft})
    function->setAttr(kRowRoleAttr, role);
  EntrySignature signature(draft);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&draft.getBody().front());
  Value table = get(plan.embedding);
  auto projected = [&](Value x, const PlannedWeight &norm, const PlannedWeight &half) {
    Value normed = buildNorm(builder, at(moduleOf(norm)), x, get(norm), Value(), model.norm);
    return LinearOp::create(builder, at(moduleOf(half)), x.getType(), normed, get(half),
                            /*bias=*/Value(), /*residual=*/Value(), KernelKindAttr());
  };
  Value ofEmbedding = projected(embed(signature, table), mtp.embeddingNorm, mtp.ofEmbedding);
  Value ofHidden = projected(signature.hidden(), mtp.hiddenNorm, mtp.ofHidden);
  Value x = AddOp::create(builder, at(modules.combine), ofEmbedding, ofHidden);
  llvm::SmallVector<Value> returned = llvm::to_vector_of<Value>(signature.states());
  size_t numStates = layerStates(kind).size();
  auto own = llvm::MutableArrayRef(returned).take_back(numStates);
  Location loc = at((modules.layers + ".0").str());
  llvm::StringMap<Value> given{
      {"x", x},
      {"layer", arith::ConstantIndexOp::create(builder, loc, model.layers.size())},
      {stateLayerName(kind, /*numbered=*/true), arith::ConstantIndexOp::create(builder, loc, 0)},
      {"sequences", signature.argument(EntryRole::Sequences)},
      {"positions", signature.argument(EntryRole::Positions)}};
  x = callLayer(loc, layer, kind, /*numbered=*/true, given, mtp.layer, own);
  returned.insert(returned.begin(),
                  projectOut(x, mtp.finalNorm, signature.argument(EntryRole::LogitIndices), table));
  returned.push_back(normBeforeHead(x, mtp.finalNorm));
  func::ReturnOp::create(builder, draft.getLoc(), returned);
}

/// The sampling settings that the model recommends; null if there are none.
DictionaryAttr ModelImporter::generationAttr() {
  const SamplingDefaults &sampling = model.generation;
  llvm::SmallVector<NamedAttribute> entries;
  auto add = [&](llvm::StringRef name, Attribute value) {
    entries.push_back(builder.getNamedAttr(name, value));
  };
  for (const SamplingSetting<double> &setting : kSamplingNumbers)
    if (const std::optional<double> &value = sampling.*setting.slot)
      add(setting.name, builder.getF64FloatAttr(*value));
  if (sampling.topK)
    add(kSamplingTopK.name, builder.getI64IntegerAttr(*sampling.topK));
  if (sampling.doSample)
    add(kDoSample, builder.getBoolAttr(*sampling.doSample));
  return entries.empty() ? DictionaryAttr() : builder.getDictionaryAttr(entries);
}

DictionaryAttr ModelImporter::modelAttr() {
  llvm::SmallVector<NamedAttribute> entries;
  auto add = [&](llvm::StringRef name, Attribute value) {
    entries.push_back(builder.getNamedAttr(name, value));
  };
  add("family", builder.getStringAttr(model.family));
  add("max_positions", builder.getI64IntegerAttr(model.maxPositions));
  if (model.generation.bos)
    add("bos", builder.getI64IntegerAttr(*model.generation.bos));
  llvm::SmallVector<Attribute> eos;
  for (int64_t id : model.generation.eos)
    eos.push_back(builder.getI64IntegerAttr(id));
  add("eos", builder.getArrayAttr(eos));
  if (DictionaryAttr generation = generationAttr())
    add("generation", generation);
  return builder.getDictionaryAttr(entries);
}

OwningOpRef<ModuleOp> ModelImporter::import(llvm::StringRef name) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(at("model"), name);
  (*module)->setAttr(kModelAttr, modelAttr());
  builder.setInsertionPointToEnd(module->getBody());
  declareAll();
  planStates();
  buildLayers();
  buildMain();
  if (plan.mtp)
    buildDraft();
  return module;
}

} // namespace

OwningOpRef<ModuleOp> importModel(MLIRContext &context, const ModelConfig &model,
                                  const WeightPlan &plan, llvm::StringRef name) {
  context.loadDialect<MicaDialect, func::FuncDialect, arith::ArithDialect, tensor::TensorDialect>();
  return ModelImporter(context, model, plan).import(name);
}

} // namespace mica
