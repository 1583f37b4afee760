#include "frontend/config/gguf/GgufTensors.h"

#include "frontend/families/GgufArchitecture.h"
#include "frontend/families/Registry.h"
#include "frontend/support/InputError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mica {
namespace {

constexpr llvm::StringLiteral layerPrefix = "blk.";

/// The parts of a name: layer 3, "attn_q" and ".weight" for "blk.3.attn_q.weight"; the last is
/// empty for a name without it.
struct TensorName {
  std::optional<int64_t> layer;
  llvm::StringRef module, part;
};

std::optional<TensorName> parse(llvm::StringRef name) {
  TensorName result;
  if (name.consume_front(layerPrefix)) {
    auto [number, rest] = name.split('.');
    int64_t layer;
    // Another spelling of the number would be another tensor.
    if (number.getAsInteger(10, layer) || layer < 0 || std::to_string(layer) != number)
      return std::nullopt;
    result.layer = layer;
    name = rest;
  }
  result.module = name;
  for (llvm::StringRef part : {".weight", ".bias"})
    if (result.part.empty() && result.module.consume_back(part))
      result.part = name.drop_front(result.module.size());
  return result;
}

/// The modules of models of `config`, in layers or outside of them. Those of the architecture come
/// first; folders, which have no architecture, use those of all architectures.
llvm::SmallVector<GgufModule> modulesOf(const ModelConfig &config, bool ofLayers) {
  llvm::SmallVector<GgufModule> modules;
  if (config.gguf)
    llvm::append_range(modules, ofLayers ? config.gguf->modules : config.gguf->modelModules);
  llvm::append_range(modules, ofLayers ? ggufLayerModules() : ggufModules());
  if (ofLayers && !config.gguf)
    for (const FamilyEntry &entry : familyEntries())
      if (entry.gguf)
        llvm::append_range(modules, entry.gguf->modules);
  llvm::erase_if(modules, [&](const GgufModule &module) { return !module.isOf(*config.names); });
  return modules;
}

/// The module named `name` among `modules`; null if there is none.
const GgufModule *findModule(llvm::ArrayRef<GgufModule> modules, const TensorName &name) {
  auto found = llvm::find_if(modules, [&](const GgufModule &module) {
    return module.name == name.module &&
           (module.part ? *module.part == name.part : module.isBare == name.part.empty());
  });
  return found == modules.end() ? nullptr : found;
}

/// "mlp.experts.5.up_proj" of the owner "mlp.experts.*".
std::string productOf(llvm::StringRef owner, int64_t index, llvm::StringRef product) {
  auto [before, after] = owner.split('*');
  std::string number = before == owner ? "" : std::to_string(index);
  return (before + number + after + "." + product).str();
}

/// The family's name of a layer's module; `expert` is used for modules of experts.
std::string layerName(const NamingTable &names, int64_t layer, const GgufModule &module,
                      int64_t expert = 0) {
  llvm::StringRef own = names.*module.module;
  bool ofExperts = module.owner == GgufOwner::Experts || module.owner == GgufOwner::AllExperts;
  std::string name = ofExperts ? productOf(names.expert, expert, own)
                     : module.owner == GgufOwner::SharedExpert
                         ? productOf(names.sharedExpert, 0, own)
                         : own.str();
  return (names.layers + "." + llvm::Twine(layer) + "." + name).str();
}

TensorInfo infoOf(const GgufTensor &tensor) {
  TensorInfo info;
  info.name = tensor.name;
  info.shape.assign(tensor.shape.begin(), tensor.shape.end());
  info.offset = tensor.offset;
  info.size = tensor.size;
  info.file = tensor.file;
  if (tensor.type->isPlain())
    info.type = *storedTypeNamed(tensor.type->name);
  else
    info.blocks = tensor.type;
  return info;
}

/// Splits a tensor [experts, rows, columns] or, for biases, [experts, rows], into its experts.
void splitExperts(const NamingTable &names, const TensorName &name, const GgufModule &module,
                  const TensorInfo &all, std::vector<TensorInfo> &tensors) {
  int64_t experts = all.shape.front();
  for (int64_t i = 0; i < experts; ++i) {
    TensorInfo &one = tensors.emplace_back(all);
    one.name = layerName(names, *name.layer, module, i) + name.part.str();
    one.shape.erase(one.shape.begin());
    one.size = all.size / experts;
    one.offset = all.offset + i * one.size;
  }
}

bool isUncomputed(const ModelConfig &config, int64_t layer) {
  auto computed = static_cast<int64_t>(config.layers.size());
  return layer >= computed && layer < computed + config.numNextnPredictLayers;
}

} // namespace

llvm::StringMap<GgufTensorRef> ggufTensorRefs(const ModelConfig &config) {
  const NamingTable &names = *config.names;
  llvm::StringMap<GgufTensorRef> result;
  auto add = [&](const llvm::Twine &name, const GgufModule &module, const llvm::Twine &place,
                 int64_t matrix = 0, int64_t matrices = 1) {
    std::string fileName = (place + module.name).str();
    if (module.part)
      result[name.str()] = {fileName + module.part->str(), matrix, matrices};
    if (module.isBare)
      result[(name + ".weight").str()] = {fileName, matrix, matrices};
    for (llvm::StringRef part : {"", ".weight", ".bias"})
      result.try_emplace((name + part).str(),
                         GgufTensorRef{fileName + part.str(), matrix, matrices});
  };
  for (const GgufModule &module : modulesOf(config, false))
    add(names.*module.module, module, "");
  llvm::SmallVector<GgufModule> layerModules = modulesOf(config, true);
  for (auto [layer, kind] : llvm::enumerate(config.layers))
    for (const GgufModule &module : layerModules) {
      auto *sparse = std::get_if<SparseConfig>(&config.layerTypes[kind].ffn);
      int64_t count = module.owner != GgufOwner::Experts ? 1 : sparse ? sparse->experts : 0;
      for (int64_t i = 0; i < count; ++i)
        add(layerName(names, layer, module, i), module, layerPrefix + llvm::Twine(layer) + ".", i,
            count);
    }
  return result;
}

std::vector<TensorInfo> nameGgufTensors(const GgufModel &model, const ModelConfig &config) {
  const NamingTable &names = *config.names;
  llvm::SmallVector<GgufModule> layerModules = modulesOf(config, true),
                                modelModules = modulesOf(config, false);
  std::vector<TensorInfo> tensors;
  for (const GgufTensor &tensor : model.tensors()) {
    TensorInfo info = infoOf(tensor);
    auto name = parse(tensor.name);
    const GgufModule *module =
        name ? findModule(name->layer ? layerModules : modelModules, *name) : nullptr;
    bool isStacked = module && module->owner == GgufOwner::Experts;
    size_t rank = name && name->part == ".bias" ? 2 : 3;
    if (isStacked && info.shape.size() == rank && info.shape.front() > 0) {
      splitExperts(names, *name, *module, info, tensors);
      continue;
    }
    if (module && !isStacked)
      info.name =
          (name->layer ? layerName(names, *name->layer, *module) : (names.*module->module).str()) +
          (module->part     ? ""
           : module->isBare ? ".weight"
                            : name->part.str());
    // Of a layer that is not computed, whose modules need not be known.
    else if (name && name->layer && isUncomputed(config, *name->layer))
      info.name =
          (names.layers + "." + llvm::Twine(*name->layer) + "." + name->module + name->part).str();
    if (module && module->isRow && info.shape.size() == 1)
      info.shape.insert(info.shape.begin(), 1);
    // A number per head may be a row of one number each.
    if (module && module->part && info.shape.size() == 2 && info.shape.back() == 1)
      info.shape.pop_back();
    if (config.gguf && config.gguf->restoresHeads && module &&
        (module->module == &NamingTable::query || module->module == &NamingTable::key))
      info.interleavedHeadDim = config.layerTypes.front().attention.headDim;
    info.isNegatedExp = module && module->isNegatedExp;
    tensors.push_back(std::move(info));
  }
  return tensors;
}

llvm::Error inGgufNames(llvm::Error error, const ModelConfig &config) {
  llvm::StringMap<GgufTensorRef> names;
  return renameQuoted(std::move(error), [&](llvm::StringRef quoted) {
    if (names.empty())
      names = ggufTensorRefs(config);
    auto known = names.find(quoted);
    if (known == names.end())
      return quoted.str();
    // As TensorPart names an entry.
    const GgufTensorRef &place = known->second;
    return place.matrices == 1 ? place.tensor
                               : place.tensor + "[" + std::to_string(place.matrix) + "]";
  });
}

} // namespace mica
