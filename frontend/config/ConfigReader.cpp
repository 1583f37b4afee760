#include "frontend/config/ConfigReader.h"

#include "frontend/config/GenerationReader.h"
#include "frontend/config/KeyReader.h"
#include "frontend/config/ModelBuilder.h"
#include "frontend/families/Family.h"
#include "frontend/formats/checkpoint/WeightFiles.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace mica {

static std::string knownTypes() {
  return llvm::join(
      llvm::map_range(familyEntries(), [](const FamilyEntry &e) { return e.modelType.str(); }),
      ", ");
}

/// The known type with the name closest to `type`, which may be a newer or a larger variant of it;
/// empty if none is close. A name that extends `type`, as gemma3_text extends gemma3, is closer
/// than others.
static llvm::StringRef nearestType(llvm::StringRef type) {
  llvm::StringRef nearest;
  std::pair<bool, unsigned> least;
  for (const FamilyEntry &entry : familyEntries()) {
    llvm::StringRef known = entry.modelType;
    unsigned distance = known.edit_distance(type);
    bool continues = !type.empty() && known.starts_with((type + "_").str());
    if (!continues && !type.starts_with(known) && 3 * distance > type.size())
      continue;
    // The last of equally close ones: generations are sorted.
    std::pair<bool, unsigned> rank = {!continues, distance};
    if (nearest.empty() || rank <= least) {
      nearest = known;
      least = rank;
    }
  }
  return nearest;
}

static llvm::Expected<const FamilyEntry *> findEntry(const llvm::json::Object &config,
                                                     llvm::StringRef path) {
  const llvm::json::Value *value = config.get("model_type");
  if (!value)
    return inputError(path, "has no key \"model_type\"", "add one of " + knownTypes());
  auto type = value->getAsString();
  for (const FamilyEntry &entry : familyEntries())
    if (type == entry.modelType)
      return &entry;
  llvm::StringRef nearest = nearestType(type.value_or("").lower());
  return inputError(path,
                    "has the model_type " + shown(*value) + ", which is unknown" +
                        (nearest.empty() ? "" : " (the nearest is " + inQuotes(nearest) + ")"),
                    "choose a model of one of the types " + knownTypes());
}

/// The class determines the head on top of the decoder: only language models are supported.
static llvm::Error checkArchitectures(const llvm::json::Object &config, const Family &family,
                                      llvm::StringRef path) {
  const llvm::json::Value *value = config.get("architectures");
  if (!value || value->kind() == llvm::json::Value::Null)
    return llvm::Error::success();
  const llvm::json::Array *list = value->getAsArray();
  if (list && llvm::all_of(*list, [&](const llvm::json::Value &item) {
        auto name = item.getAsString();
        return name && llvm::is_contained(family.architectures, *name);
      }))
    return llvm::Error::success();
  return inputError(path,
                    "has \"architectures\": " + shown(*value) + ", only " +
                        llvm::join(family.architectures, " and ") + " is supported for " +
                        family.name,
                    hints::otherModel);
}

llvm::Expected<ModelConfig> modelConfigFrom(const llvm::json::Object &config, llvm::StringRef path,
                                            llvm::function_ref<bool(llvm::StringRef)> hasTensor) {
  auto entry = findEntry(config, path);
  if (!entry)
    return entry.takeError();
  auto family = (*entry)->choose({path, &config, hasTensor});
  if (!family)
    return family.takeError();
  if (llvm::Error error = checkArchitectures(config, **family, path))
    return std::move(error);
  JsonKeys keys(config, path);
  const llvm::ArrayRef<KeyRule> everyKey[] = {everyKeys()};
  KeyTables tables = {(*family)->name,
                      {(*family)->keys, (*family)->fixed, (*family)->ignoredKeys},
                      {everyKey, commonFixedKeys(), commonIgnoredKeys()}};
  std::vector<IgnoredKey> ignored;
  auto h = readKeys(keys, tables, ignored);
  if (!h)
    return h.takeError();
  auto model = buildModelConfig(std::move(*h), **family, KeyNames(keys, tables));
  if (!model)
    return model.takeError();
  model->ignored = std::move(ignored);
  if (llvm::Error error = finishModelConfig(*model, path))
    return std::move(error);
  return model;
}

/// Adds the settings of `folder`/generation_config.json, if it exists.
static llvm::Error addGeneration(llvm::StringRef folder, ModelConfig &model) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, "generation_config.json");
  if (!llvm::sys::fs::exists(path))
    return llvm::Error::success();
  auto object = readJsonObject(path);
  if (!object)
    return object.takeError();
  if (llvm::Error error = readGeneration(JsonKeys(*object, path), model.generation, model.ignored))
    return error;
  return finishModelConfig(model, path);
}

llvm::Expected<ModelConfig> readModelConfig(llvm::StringRef folder, const WeightFiles *weights) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, "config.json");
  auto config = readJsonObject(path);
  if (!config)
    return config.takeError();
  // A name may lack its first word, see NamingTable::baseModel.
  auto hasTensor = [weights](llvm::StringRef name) {
    return weights->find(name) || weights->find(name.split('.').second);
  };
  llvm::function_ref<bool(llvm::StringRef)> evidence;
  if (weights)
    evidence = hasTensor;
  auto model = modelConfigFrom(*config, path, evidence);
  if (!model)
    return model.takeError();
  if (llvm::Error error = addGeneration(folder, *model))
    return std::move(error);
  return model;
}

} // namespace mica
