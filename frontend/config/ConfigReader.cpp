#include "frontend/config/ConfigReader.h"

#include "frontend/config/GenerationReader.h"
#include "frontend/config/KeyReader.h"
#include "frontend/config/ModelBuilder.h"
#include "frontend/families/CommonKeys.h"
#include "frontend/families/Family.h"
#include "frontend/families/Registry.h"
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
  std::pair<bool, unsigned> bestRank;
  for (const FamilyEntry &entry : familyEntries()) {
    llvm::StringRef known = entry.modelType;
    unsigned distance = known.edit_distance(type);
    bool continues = !type.empty() && known.starts_with((type + "_").str());
    if (!continues && !type.starts_with(known) && 3 * distance > type.size())
      continue;
    // The last of equally close ones: generations are sorted.
    std::pair<bool, unsigned> rank = {!continues, distance};
    if (nearest.empty() || rank <= bestRank) {
      nearest = known;
      bestRank = rank;
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
                    "has \"architectures\": " + shown(*value) + ", but only " +
                        llvm::join(family.architectures, " and ") +
                        (family.architectures.size() == 1 ? " is" : " are") + " supported for " +
                        family.name,
                    "use a causal language model");
}

/// Finds the config of the text part of a larger model, and reads the surrounding keys that take
/// precedence into `around`.
static llvm::Expected<const llvm::json::Object *>
readAround(const llvm::json::Object &config, llvm::StringRef path, const Family &family,
           Hyperparameters &around, std::vector<IgnoredKey> &ignored) {
  const TextPart &part = *family.textPart;
  const llvm::json::Object *text = config.getObject(part.key);
  if (!text)
    return inputError(path,
                      "has no object " + inQuotes(part.key) + ", which " + family.name + " needs",
                      "add it");
  if (const llvm::json::Value *type = text->get("model_type");
      type && *type != llvm::json::Value(part.modelType))
    return inputError(path,
                      "has \"" + part.key + ".model_type\": " + shown(*type) + ", expected " +
                          inQuotes(part.modelType),
                      hints::otherModel);
  llvm::SmallVector<IgnoredKeyRow> ignoredKeys(part.ignoredKeys);
  llvm::append_range(ignoredKeys, part.leftOutParts);
  ignoredKeys.push_back({part.key, reasons::used});
  const llvm::ArrayRef<KeyRule> keys[] = {part.keys, everyKeys()};
  KeyTables tables = {
      family.name, {keys, {}, ignoredKeys}, {{}, commonFixedKeys(), commonIgnoredKeys()}};
  auto read = readKeys(JsonKeys(config, path), tables, ignored);
  if (!read)
    return read.takeError();
  for (IgnoredKey &key : ignored)
    key.missed = config.getNull(key.key) == std::nullopt &&
                 llvm::any_of(part.leftOutParts,
                              [&](const IgnoredKeyRow &row) { return row.name == key.key; });
  around = std::move(*read);
  return text;
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
  std::vector<IgnoredKey> ignored;
  Hyperparameters around;
  const llvm::json::Object *own = &config;
  const TextPart *part = (*family)->textPart;
  if (part) {
    auto text = readAround(config, path, **family, around, ignored);
    if (!text)
      return text.takeError();
    own = *text;
  }
  JsonKeys keys(*own, path, part ? (part->key + ".").str() : "");
  const llvm::ArrayRef<KeyRule> everyKey[] = {everyKeys()};
  KeyTables tables = {(*family)->name,
                      {(*family)->keys, (*family)->fixed, (*family)->ignoredKeys},
                      {everyKey, commonFixedKeys(), commonIgnoredKeys()}};
  auto h = readKeys(keys, tables, ignored);
  if (!h)
    return h.takeError();
  if (part) {
    h->tiedHead = around.tiedHead;
    h->type = h->type ? h->type : around.type;
    h->bos = h->bos ? h->bos : around.bos;
    if (h->eos.empty())
      h->eos = around.eos;
  }
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
