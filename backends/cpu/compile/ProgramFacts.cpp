//===- ProgramFacts.cpp - what a module says about its program -----------------------------------===//

#include "backends/cpu/compile/ProgramFacts.h"

#include "backends/cpu/lowering/Passes.h"
#include "backends/cpu/pack/PackWeights.h"
#include "backends/cpu/runtime/Cpu.h"

using namespace mlir;

namespace mica::cpu {

namespace {

std::string nameOf(Type type) { return type.isF32() ? "f32" : type.isBF16() ? "bf16" : "f16"; }

/// Sums over the weights of a module at stage `kernels`.
class WeightCost {
public:
  explicit WeightCost(ModuleOp module) : module(module) {
    module.walk([&](MoeGateOp gate) {
      auto picks = cast<RankedTensorType>(gate->getResult(1).getType());
      chosen = std::max(chosen, picks.getDimSize(1));
    });
    module.walk([&](Operation *op) {
      if (auto get = dyn_cast<GetWeightOp>(op))
        note(get.getResult(), get.getWeight());
      if (auto select = dyn_cast<SelectWeightOp>(op))
        for (auto name : select.getWeights().getAsRange<FlatSymbolRefAttr>())
          note(select.getResult(), name.getValue());
    });
  }

  void addTo(ProgramFacts &facts) {
    for (WeightOp weight : module.getOps<WeightOp>()) {
      RankedTensorType type = weight.getTensorType();
      uint64_t bytes = weight.getBytes().value_or(0), elements = type.getNumElements();
      if (type.getRank() == 3 && chosen > 0) {
        int64_t experts = type.getDimSize(0);
        bytes = bytes / experts * std::min(chosen, experts);
        elements = elements / experts * std::min(chosen, experts);
      }
      if (!computedWith.contains(weight.getSymName())) {
        // Only gathered from: one row.
        facts.weightBytesPerToken += bytes / std::max<int64_t>(1, type.getDimSize(0));
        continue;
      }
      facts.weightBytesPerToken += bytes;
      facts.flopsPerToken += type.getRank() >= 2 ? 2 * elements : 0;
      if (type.getRank() >= 2 && type.getElementType().isBF16())
        facts.weights = "bf16";
    }
  }

private:
  void note(Value value, StringRef name) {
    if (!llvm::all_of(value.getUsers(), llvm::IsaPred<EmbeddingOp>))
      computedWith.insert(name);
  }

  ModuleOp module;
  llvm::StringSet<> computedWith;
  int64_t chosen = 0;
};

llvm::Error readCaches(func::FuncOp entry, ProgramFacts &facts) {
  for (Type type : entry.getArgumentTypes()) {
    auto cache = dyn_cast<KvCacheType>(type);
    if (!cache)
      continue;
    if (!cache.getLayout())
      return llvm::createStringError("the caches of @" + entry.getName() + " have no layout");
    SmallVector<int64_t> shape = cache.getPhysicalShape();
    int64_t perBlock = 1;
    for (int64_t extent : shape)
      if (!ShapedType::isDynamic(extent))
        perBlock *= extent;
    int64_t block = cache.getLayout().getBlock(), bytes = cache.getElementType().getIntOrFloatBitWidth() / 8;
    size_t index = facts.caches.size();
    std::string name = index == 0 ? "k" : index == 1 ? "v" : "cache" + std::to_string(index);
    facts.caches.push_back({name, nameOf(cache.getElementType()), shape, perBlock / block * bytes});
    facts.positionBlock = block;
    facts.kv = nameOf(cache.getElementType());
  }
  return llvm::Error::success();
}

void countOps(ModuleOp module, ProgramFacts &facts) {
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (isa<MicaDialect>(op->getDialect()))
        ++facts.ops[function.getName().str()][op->getName().stripDialect().str()];
    });
}

llvm::json::Value shapeOf(const CacheFacts &cache) {
  llvm::json::Array shape;
  // -1 stands for the number of sequences, -2 for the number of blocks.
  int64_t next = -1;
  for (int64_t extent : cache.shape)
    shape.push_back(ShapedType::isDynamic(extent) ? next-- : extent);
  return shape;
}

llvm::json::Array requiredFeatures(const TargetDescription &target) {
  llvm::json::Array features;
  for (const std::string &feature : target.features)
    if (rt::knownCpuFeature(feature))
      features.push_back(feature);
  return features;
}

} // namespace

llvm::json::Value toJson(Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute))
    return llvm::json::fixUTF8(text.getValue());
  if (auto boolean = dyn_cast<BoolAttr>(attribute))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return number.getValueAsDouble();
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    llvm::json::Array values;
    for (Attribute element : array)
      values.push_back(toJson(element));
    return values;
  }
  if (auto dictionary = dyn_cast<DictionaryAttr>(attribute)) {
    llvm::json::Object object;
    for (NamedAttribute entry : dictionary)
      object[entry.getName().getValue()] = toJson(entry.getValue());
    return object;
  }
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

llvm::Expected<ProgramFacts> readFacts(ModuleOp module) {
  ProgramFacts facts;
  facts.name = module.getName().value_or("model").str();
  facts.model = module->getAttrOfType<DictionaryAttr>("mica.model");
  facts.weights = facts.kv = "f32";
  func::FuncOp entry;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!isEntry(function))
      continue;
    entry = function;
    if (auto rows = function->getAttrOfType<IntegerAttr>("mica.max_rows"))
      facts.crossing = std::max(facts.crossing, rows.getInt());
  }
  if (!facts.model || !entry || entry.getNumResults() == 0)
    return llvm::createStringError("the module is no model (it lacks mica.model or an entry function)");
  facts.vocab = cast<ShapedType>(entry.getResultTypes().front()).getDimSize(1);
  if (auto limit = facts.model.getAs<IntegerAttr>("max_positions"))
    facts.maxSeq = limit.getInt();
  if (llvm::Error error = readCaches(entry, facts))
    return error;
  facts.weightBytes = packedBytes(module);
  WeightCost(module).addTo(facts);
  countOps(module, facts);
  return facts;
}

void addScratchFacts(ModuleOp module, ProgramFacts &facts) {
  auto get = [&](StringRef name) {
    auto value = module->getAttrOfType<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  facts.scratchPerRow = get("mica.scratch_per_row");
  facts.scratchFixed = get("mica.scratch_fixed");
}

llvm::json::Object makeManifest(const ProgramFacts &facts, const TargetDescription &target) {
  using llvm::json::Array;
  using llvm::json::Object;
  Array caches;
  int64_t perPosition = 0;
  for (const CacheFacts &cache : facts.caches) {
    perPosition += cache.bytesPerPosition;
    caches.push_back(Object{{"name", cache.name},
                            {"element", cache.element},
                            {"shape", shapeOf(cache)},
                            {"bytes_per_token", cache.bytesPerPosition}});
  }
  Object ops;
  for (const auto &[function, counts] : facts.ops) {
    Object inside;
    for (const auto &[op, count] : counts)
      inside[op] = count;
    ops[function] = std::move(inside);
  }
  auto fromModel = [&](StringRef key, llvm::json::Value otherwise) {
    Attribute value = facts.model.get(key);
    return value ? toJson(value) : otherwise;
  };
  return Object{
      {"name", llvm::json::fixUTF8(facts.name)},
      {"weights", facts.weights},
      {"kv", facts.kv},
      {"vocab", facts.vocab},
      {"max_seq", facts.maxSeq},
      {"target", Object{{"cpu", target.cpu}, {"features", requiredFeatures(target)}}},
      {"caches", std::move(caches)},
      {"position_block", std::max<int64_t>(1, facts.positionBlock)},
      {"scratch", Object{{"bytes_per_row", facts.scratchPerRow}, {"bytes_fixed", facts.scratchFixed}}},
      {"weight_bytes", facts.weightBytes},
      {"crossing", facts.crossing},
      {"bos", fromModel("bos", nullptr)},
      {"eos", fromModel("eos", Array())},
      {"generation", fromModel("generation", Object())},
      {"cost", Object{{"weight_bytes_per_token", facts.weightBytesPerToken},
                      {"flops_per_token", facts.flopsPerToken},
                      {"kv_bytes_per_position", perPosition}}},
      {"config", toJson(facts.model)},
      {"ops", std::move(ops)},
  };
}

} // namespace mica::cpu
