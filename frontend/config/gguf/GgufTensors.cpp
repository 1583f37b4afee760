#include "frontend/config/gguf/GgufConfig.h"

#include "frontend/config/gguf/GgufArchitecture.h"
#include "frontend/support/InputError.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

namespace mica {
namespace {

constexpr llvm::StringLiteral layerPrefix = "blk.";

/// A name in its parts: of "blk.3.attn_q.weight" layer 3, "attn_q" and ".weight".
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
  size_t dot = name.rfind('.');
  if (dot == llvm::StringRef::npos)
    return std::nullopt;
  result.module = name.take_front(dot);
  result.part = name.drop_front(dot);
  if (result.part != ".weight" && result.part != ".bias")
    return std::nullopt;
  return result;
}

std::string layerName(const NamingTable &names, int64_t layer, llvm::StringRef module) {
  return (names.layers + "." + llvm::Twine(layer) + "." + module).str();
}

/// model.layers.3.mlp.experts.5.up_proj
std::string expertName(const NamingTable &names, int64_t layer, int64_t expert,
                       llvm::StringRef module) {
  auto [before, after] = llvm::StringRef(names.expert).split('*');
  return layerName(names, layer, (before + llvm::Twine(expert) + after + "." + module).str());
}

/// The module of a naming table that `name` is; null where it is none.
const GgufModule *moduleOf(const TensorName &name) {
  for (const GgufModule &module : name.layer ? ggufLayerModules() : ggufModules())
    if (module.name == name.module)
      return &module;
  return nullptr;
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

/// The experts of a tensor [experts, rows, columns], each of its own.
void splitExperts(const NamingTable &names, int64_t layer, const GgufModule &module,
                  llvm::StringRef part, const TensorInfo &all, std::vector<TensorInfo> &tensors) {
  int64_t experts = all.shape.front();
  for (int64_t i = 0; i < experts; ++i) {
    TensorInfo &one = tensors.emplace_back(all);
    one.name = expertName(names, layer, i, names.*module.module) + part.str();
    one.shape.erase(one.shape.begin());
    one.size = all.size / experts;
    one.offset = all.offset + i * one.size;
  }
}

/// The file's name of every tensor that a model of `config` can have, by the family's.
llvm::StringMap<std::string> fileNames(const ModelConfig &config) {
  const NamingTable &names = *config.names;
  llvm::StringMap<std::string> result;
  auto add = [&](const llvm::Twine &name, const llvm::Twine &fileName) {
    for (llvm::StringRef part : {"", ".weight", ".bias"})
      result[(name + part).str()] = (fileName + part).str();
  };
  for (const GgufModule &module : ggufModules())
    add(names.*module.module, module.name);
  for (auto [layer, kind] : llvm::enumerate(config.layers))
    for (const GgufModule &module : ggufLayerModules()) {
      std::string fileName = (layerPrefix + llvm::Twine(layer) + "." + module.name).str();
      auto *sparse = std::get_if<SparseConfig>(&config.kinds[kind].ffn);
      if (!module.stacked)
        add(layerName(names, layer, names.*module.module), fileName);
      for (int64_t i = 0; module.stacked && sparse && i < sparse->experts; ++i)
        add(expertName(names, layer, i, names.*module.module), fileName);
    }
  return result;
}

} // namespace

std::vector<TensorInfo> nameGgufTensors(const GgufModel &model, const ModelConfig &config) {
  const NamingTable &names = *config.names;
  std::vector<TensorInfo> tensors;
  for (const GgufTensor &tensor : model.tensors()) {
    TensorInfo info = infoOf(tensor);
    auto name = parse(tensor.name);
    const GgufModule *module = name ? moduleOf(*name) : nullptr;
    if (module && module->stacked && info.shape.size() == 3 && info.shape.front() > 0) {
      splitExperts(names, *name->layer, *module, name->part, info, tensors);
      continue;
    }
    if (module && !module->stacked) {
      llvm::StringRef own = names.*module->module;
      info.name =
          (name->layer ? layerName(names, *name->layer, own) : own.str()) + name->part.str();
    }
    tensors.push_back(std::move(info));
  }
  return tensors;
}

llvm::Error inGgufNames(llvm::Error error, const ModelConfig &config) {
  llvm::StringMap<std::string> names;
  return renameQuoted(std::move(error), [&](llvm::StringRef quoted) {
    if (names.empty())
      names = fileNames(config);
    auto known = names.find(quoted);
    return known == names.end() ? quoted.str() : known->second;
  });
}

} // namespace mica
