#include "frontend/import/ModelImporter.h"

#include "frontend/import/LayerBuilder.h"
#include "ir/Mica/EntrySignature.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"

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
  void buildMain();
  Value get(const PlannedWeight &weight);
  Value callLayers(Value x, const EntrySignature &main, llvm::MutableArrayRef<Value> caches);
  Value embed(const EntrySignature &main, Value table);
  Value projectOut(Value x, Value outputs, Value table);
  DictionaryAttr modelAttr();
  DictionaryAttr generationAttr();
  Location at(llvm::StringRef name) { return NameLoc::get(builder.getStringAttr(name)); }

  /// Layers whose keys and values have the same shapes and windows share a pair of caches.
  using CacheShape = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  static CacheShape cacheShapeOf(const AttentionConfig &attention) {
    return {attention.kvHeads, attention.headDim, attention.valueDim, attention.window.value_or(0)};
  }
  const LayerKind &kindOf(size_t layer) const { return model.kinds[model.layers[layer]]; }
  void planCaches();
  KvCacheType cacheType(const CacheShape &shape, bool ofValues);
  llvm::SmallVector<Type> cacheTypes();

  OpBuilder builder;
  const ModelConfig &model;
  const WeightPlan &plan;
  llvm::MapVector<CacheShape, int64_t> layersOfCaches; // in the order of their first layers
  std::vector<int64_t> cacheLayers;                    // per layer, its index in its caches
  std::vector<func::FuncOp> functions;                 // per layer
};

Type ModelImporter::elementOf(StoredType type) {
  return type == StoredType::F32    ? Type(builder.getF32Type())
         : type == StoredType::BF16 ? Type(builder.getBF16Type())
                                    : Type(builder.getF16Type());
}

RankedTensorType ModelImporter::typeOf(const PlannedWeight &weight) {
  return RankedTensorType::get(weight.shape, elementOf(weight.type));
}

void ModelImporter::planCaches() {
  for (size_t layer = 0; layer < model.layers.size(); ++layer)
    cacheLayers.push_back(layersOfCaches[cacheShapeOf(kindOf(layer).attention)]++);
}

KvCacheType ModelImporter::cacheType(const CacheShape &shape, bool ofValues) {
  auto [heads, headDim, valueDim, window] = shape;
  return KvCacheType::get(builder.getContext(), layersOfCaches.lookup(shape), heads,
                          ofValues ? valueDim : headDim, builder.getF32Type(), window,
                          KvLayoutAttr());
}

/// Keys and values, for each shape.
llvm::SmallVector<Type> ModelImporter::cacheTypes() {
  llvm::SmallVector<Type> types;
  for (const auto &[shape, layers] : layersOfCaches)
    types.append({cacheType(shape, false), cacheType(shape, true)});
  return types;
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
                   IntegerAttr(), IntegerAttr(), stored);
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
  declare(plan.finalNorm);
  if (plan.finalNormBias)
    declare(*plan.finalNormBias);
  if (plan.head)
    declare(*plan.head);
}

/// One function for all layers of one structure and the same types of weights.
void ModelImporter::buildLayers() {
  using Form = std::pair<StoredType, const BlockFormat *>;
  std::map<std::pair<unsigned, std::vector<Form>>, func::FuncOp> byKind;
  std::vector<unsigned> functionsOfKind(model.kinds.size());
  for (auto [kind, weights] : llvm::zip_equal(model.layers, plan.layers)) {
    std::vector<Form> stored;
    llvm::SmallVector<Type> types;
    for (const PlannedWeight &weight : weights) {
      stored.emplace_back(weight.type, weight.blocks);
      types.push_back(typeOf(weight));
    }
    func::FuncOp &function = byKind[{kind, stored}];
    if (!function) {
      const LayerKind &structure = model.kinds[kind];
      std::string name = structure.name + "_layer";
      if (unsigned number = functionsOfKind[kind]++)
        name += "_" + std::to_string(number);
      CacheShape shape = cacheShapeOf(structure.attention);
      function = buildLayer(builder, name, model, structure, cacheType(shape, false),
                            cacheType(shape, true), /*numbered=*/layersOfCaches.size() > 1, types);
    }
    functions.push_back(function);
  }
}

Value ModelImporter::get(const PlannedWeight &weight) {
  return GetWeightOp::create(builder, at(weight.symbol), typeOf(weight), weight.symbol);
}

Value ModelImporter::callLayers(Value x, const EntrySignature &main,
                                llvm::MutableArrayRef<Value> caches) {
  Value sequences = main.argument(EntryRole::Sequences),
        positions = main.argument(EntryRole::Positions);
  for (auto [index, function] : llvm::enumerate(functions)) {
    Location loc = at((model.names->layers + "." + llvm::Twine(index)).str());
    const AttentionConfig &attention = kindOf(index).attention;
    auto pair = std::distance(layersOfCaches.begin(), layersOfCaches.find(cacheShapeOf(attention)));
    Value &kCache = caches[2 * pair], &vCache = caches[2 * pair + 1];
    llvm::SmallVector<Value> operands = {x, kCache, vCache,
                                         arith::ConstantIndexOp::create(builder, loc, index)};
    if (layersOfCaches.size() > 1)
      operands.push_back(arith::ConstantIndexOp::create(builder, loc, cacheLayers[index]));
    llvm::append_values(operands, sequences, positions);
    if (attention.rope.followsLength())
      operands.push_back(main.argument(EntryRole::Lengths));
    for (const PlannedWeight &weight : plan.layers[index])
      operands.push_back(get(weight));
    auto call = func::CallOp::create(builder, loc, function, operands);
    x = call.getResult(0);
    kCache = call.getResult(1);
    vCache = call.getResult(2);
  }
  return x;
}

Value ModelImporter::projectOut(Value x, Value outputs, Value table) {
  const NamingTable &names = *model.names;
  Location loc = at(names.finalNorm);
  Value chosen = SelectRowsOp::create(builder, loc, x.getType(), x, outputs);
  Value bias = plan.finalNormBias ? get(*plan.finalNormBias) : Value();
  Value normed = buildNorm(builder, loc, chosen, get(plan.finalNorm), bias, model.norm);
  Value head = plan.head ? get(*plan.head) : table;
  Value logits = LmHeadOp::create(builder, at(names.head), rowsType(builder, model.vocab), normed,
                                  head, KernelKindAttr());
  logits = buildScale(builder, at(names.head), logits, model.logitMultiplier);
  if (model.logitSoftcap)
    logits = SoftcapOp::create(builder, at(names.head), logits.getType(), logits,
                               builder.getF64FloatAttr(*model.logitSoftcap));
  return logits;
}

/// The rows of the tokens, with what is known of their positions.
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

/// @main(tokens, sequences, positions, logit_indices, k_cache, v_cache, k_cache_1...) -> (logits,
/// k_cache, v_cache...), with lengths before the caches where a rope follows them.
void ModelImporter::buildMain() {
  Type indices = indexRowsType(builder);
  llvm::SmallVector<Type> caches = cacheTypes();
  llvm::SmallVector<EntryRole> roles = {EntryRole::Tokens, EntryRole::Sequences,
                                        EntryRole::Positions, EntryRole::LogitIndices};
  if (llvm::any_of(model.kinds,
                   [](const LayerKind &kind) { return kind.attention.rope.followsLength(); }))
    roles.push_back(EntryRole::Lengths);
  llvm::SmallVector<Type> inputs(roles.size(), indices), results{rowsType(builder, model.vocab)};
  auto argumentNames =
      llvm::map_to_vector(roles, [](EntryRole role) { return std::string(infoOf(role).name); });
  roles.append(caches.size(), EntryRole::Cache);
  llvm::append_range(inputs, caches);
  llvm::append_range(results, caches);
  for (size_t pair = 0; pair < layersOfCaches.size(); ++pair)
    for (const char *name : {"k_cache", "v_cache"})
      argumentNames.push_back(pair == 0 ? name : name + ("_" + std::to_string(pair)));
  auto type = builder.getFunctionType(inputs, results);
  auto main = func::FuncOp::create(builder, at("model"), "main", type);
  EntrySignature signature(main);
  for (auto [index, role] : llvm::enumerate(roles))
    signature.setArgumentRole(index, role);
  signature.setResultRole(0, EntryRole::Logits);
  for (size_t cache = 1; cache <= caches.size(); ++cache)
    signature.setResultRole(cache, EntryRole::Cache);
  Block &body = *main.addEntryBlock();
  nameArguments(main, llvm::to_vector_of<llvm::StringRef>(argumentNames));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&body);
  Value table = get(plan.embedding);
  Value x = embed(signature, table);
  llvm::SmallVector<Value> returned = llvm::to_vector_of<Value>(signature.states());
  x = callLayers(x, signature, returned);
  returned.insert(returned.begin(),
                  projectOut(x, signature.argument(EntryRole::LogitIndices), table));
  func::ReturnOp::create(builder, main.getLoc(), returned);
}

/// What the model proposes for sampling; null where it proposes nothing.
DictionaryAttr ModelImporter::generationAttr() {
  const GenerationDefaults &g = model.generation;
  llvm::SmallVector<NamedAttribute> entries;
  auto number = [&](llvm::StringRef name, std::optional<double> value) {
    if (value)
      entries.push_back(builder.getNamedAttr(name, builder.getF64FloatAttr(*value)));
  };
  number("temperature", g.temperature);
  number("top_p", g.topP);
  number("min_p", g.minP);
  number("typical_p", g.typicalP);
  number("repetition_penalty", g.repetitionPenalty);
  if (g.topK)
    entries.push_back(builder.getNamedAttr("top_k", builder.getI64IntegerAttr(*g.topK)));
  if (g.doSample)
    entries.push_back(builder.getNamedAttr("do_sample", builder.getBoolAttr(*g.doSample)));
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
  (*module)->setAttr("mica.model", modelAttr());
  builder.setInsertionPointToEnd(module->getBody());
  declareAll();
  planCaches();
  buildLayers();
  buildMain();
  return module;
}

} // namespace

OwningOpRef<ModuleOp> importModel(MLIRContext &context, const ModelConfig &model,
                                  const WeightPlan &plan, llvm::StringRef name) {
  context.loadDialect<MicaDialect, func::FuncDialect, arith::ArithDialect, tensor::TensorDialect>();
  return ModelImporter(context, model, plan).import(name);
}

} // namespace mica
