#include "frontend/config/gguf/GgufConfig.h"

#include "frontend/config/ConfigReader.h"
#include "frontend/config/GenerationReader.h"
#include "frontend/config/gguf/GgufRope.h"
#include "frontend/families/Family.h"
#include "frontend/families/GgufArchitecture.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace mica {
namespace {

constexpr llvm::StringLiteral tokenEmbedding = "token_embd.weight";

/// Keys of a generation_config.json, and where llama.cpp has them.
constexpr std::pair<llvm::StringLiteral, llvm::StringLiteral> samplingKeys[] = {
    {"general.sampling.temp", "temperature"},
    {"general.sampling.top_k", "top_k"},
    {"general.sampling.top_p", "top_p"},
    {"general.sampling.min_p", "min_p"},
    {"general.sampling.penalty_repeat", "repetition_penalty"},
};

/// Ids at which a text ends: of the text, of a turn, of a message.
constexpr llvm::StringLiteral endKeys[] = {
    "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
constexpr llvm::StringLiteral beginKey = "tokenizer.ggml.bos_token_id";

/// A value as config.json would have it. Lists whose elements are alike, one per layer, are one.
llvm::json::Value toJson(const GgufValue &value) {
  if (auto whole = value.integer())
    return *whole;
  if (auto number = value.number())
    return *number;
  if (auto flag = value.boolean())
    return *flag;
  if (auto text = value.string())
    return llvm::json::fixUTF8(*text);
  if (auto integers = value.integers(); integers && !integers->empty()) {
    if (llvm::all_equal(*integers))
      return integers->front();
    return llvm::json::Array(*integers);
  }
  return value.shown();
}

class ConfigTranslator {
public:
  explicit ConfigTranslator(const GgufModel &model) : model(model), path(model.path()) {}

  llvm::Expected<ModelConfig> translate();

private:
  llvm::Error chooseArchitecture();
  llvm::Error translateKeys();
  llvm::Error translateKey(llvm::StringRef key, const GgufValue &value);
  llvm::Error translateOwn(llvm::StringRef key, llvm::StringRef name, const GgufValue &value);
  llvm::Error checkGeneral(llvm::StringRef key, const GgufValue &value);
  llvm::Error refuse(llvm::StringRef key, const GgufValue &value, const llvm::Twine &expected);
  llvm::Error checkComplete();
  void setConstants();
  llvm::Error setShape();
  void setTokens();
  llvm::Error readSampling(ModelConfig &config);
  llvm::Error checkShape(const ModelConfig &config);
  void applyConversion(ModelConfig &config) const;
  void set(llvm::StringRef name, llvm::json::Value value, llvm::StringRef from);
  void ignore(llvm::StringRef key, llvm::StringRef reason) {
    ignored.push_back({path.str(), key.str(), reason.str()});
  }
  llvm::Error inOwnWords(llvm::Error error) const;
  std::string own(llvm::StringRef name) const { return (architecture->name + "." + name).str(); }
  const GgufValue *find(llvm::StringRef name) const { return model.find(own(name)); }

  const GgufModel &model;
  llvm::StringRef path;
  const GgufArchitecture *architecture = nullptr;
  llvm::json::Object config;
  std::vector<std::pair<std::string, std::string>> origins; ///< key of config.json, of this file
  std::vector<IgnoredKey> ignored;
};

bool hasFamily(const GgufArchitecture &architecture) {
  return llvm::any_of(familyEntries(), [&](const FamilyEntry &entry) {
    return entry.modelType == architecture.modelType;
  });
}

std::string knownArchitectures() {
  llvm::SmallVector<llvm::StringRef> names;
  for (const GgufArchitecture &row : ggufArchitectures())
    if (hasFamily(row) && !llvm::is_contained(names, row.name))
      names.push_back(row.name);
  return llvm::join(names, ", ");
}

llvm::Error ConfigTranslator::refuse(llvm::StringRef key, const GgufValue &value,
                                     const llvm::Twine &expected) {
  return inputError(path, "has " + inQuotes(key) + ": " + value.shown() + ", expected " + expected,
                    remedy::otherModel);
}

llvm::Error ConfigTranslator::chooseArchitecture() {
  constexpr llvm::StringLiteral key = "general.architecture";
  const GgufValue *value = model.find(key);
  auto name = value ? value->string() : std::nullopt;
  if (!name)
    return inputError(path, "has no key " + inQuotes(key) + " with a name", remedy::fetch);
  for (const GgufArchitecture &row : ggufArchitectures())
    if (row.name == *name && hasFamily(row) &&
        (!architecture || (row.isMeant && row.isMeant(model))))
      architecture = &row;
  if (!architecture)
    return inputError(path, "has the architecture " + inQuotes(*name) + ", which is not known",
                      "choose a model of one of the architectures " + knownArchitectures());
  set("model_type", architecture->modelType, key);
  return llvm::Error::success();
}

/// `origins` is asked from its end on: a key that is set again speaks by its last name.
void ConfigTranslator::set(llvm::StringRef name, llvm::json::Value value, llvm::StringRef from) {
  config[name] = std::move(value);
  origins.emplace_back(name.str(), from.str());
}

llvm::Error ConfigTranslator::translateOwn(llvm::StringRef key, llvm::StringRef name,
                                           const GgufValue &value) {
  if (isGgufRopeKey(name))
    return llvm::Error::success();
  for (llvm::ArrayRef<GgufKey> rows : {architecture->own, architecture->keys, ggufCommonKeys()})
    for (const GgufKey &row : rows) {
      if (row.name != name)
        continue;
      if (!row.reason.empty()) {
        ignore(key, row.reason);
      } else if (!row.config.empty()) {
        set(row.config, toJson(value), key);
      } else if (!row.values.empty()) {
        llvm::json::Value allowed = llvm::cantFail(llvm::json::parse(row.values));
        if (!llvm::is_contained(*allowed.getAsArray(), toJson(value)))
          return refuse(key, value, "one of " + shown(allowed) + " (nothing else is computed)");
      }
      return llvm::Error::success();
    }
  return inputError(path,
                    "has the key " + inQuotes(key) + ", which is not known for " +
                        architecture->name + " and could change what the model computes",
                    "remove it if it does not");
}

llvm::Error ConfigTranslator::checkGeneral(llvm::StringRef key, const GgufValue &value) {
  if (key == "general.type" && value.string() != "model")
    return refuse(key, value, "\"model\"");
  bool hasBlocks = llvm::any_of(model.tensors(),
                                [](const GgufTensor &tensor) { return !tensor.type->isPlain(); });
  if (key == "general.quantization_version" && hasBlocks && value.integer() != 2)
    return refuse(key, value, "2");
  return llvm::Error::success();
}

llvm::Error ConfigTranslator::translateKey(llvm::StringRef key, const GgufValue &value) {
  llvm::StringRef name = key;
  if (name.consume_front(architecture->name) && name.consume_front("."))
    return translateOwn(key, name, value);
  if (key.starts_with("tokenizer."))
    return llvm::Error::success(); // its reader judges it
  if (llvm::Error error = checkGeneral(key, value))
    return error;
  for (auto [sampling, _] : samplingKeys)
    if (key == sampling)
      return llvm::Error::success();
  if (auto reason = whyGgufKeyIsIrrelevant(key)) {
    if (*reason != reasons::used)
      ignore(key, *reason);
    return llvm::Error::success();
  }
  return inputError(path, "has the key " + inQuotes(key) + ", which is not known",
                    "remove it if it has no effect");
}

llvm::Error ConfigTranslator::translateKeys() {
  llvm::SmallVector<llvm::StringRef> keys;
  for (const auto &entry : model.metadata())
    keys.push_back(entry.getKey());
  llvm::sort(keys); // so that of several wrong keys the same one is named every time
  for (llvm::StringRef key : keys)
    if (llvm::Error error = translateKey(key, *model.find(key)))
      return error;
  return llvm::Error::success();
}

/// llama.cpp, whose files these are, requires the epsilon of the norms: families have defaults for
/// it, which would be a guess.
llvm::Error ConfigTranslator::checkComplete() {
  constexpr llvm::StringLiteral layerNorm = "attention.layer_norm_epsilon";
  bool isLayerNorm =
      llvm::any_of(architecture->keys, [&](const GgufKey &row) { return row.name == layerNorm; });
  llvm::StringRef epsilon = isLayerNorm ? layerNorm : "attention.layer_norm_rms_epsilon";
  if (!find(epsilon))
    return inputError(
        path, "has no key " + inQuotes(own(epsilon)) + ", without which the norms are not known",
        remedy::fetch);
  llvm::StringRef name = architecture->lacking ? architecture->lacking(model) : "";
  if (name.empty())
    return llvm::Error::success();
  return inputError(path,
                    "has no key " + inQuotes(own(name)) +
                        ", without which a model of so many experts can be one of several",
                    "choose a file that a newer converter wrote");
}

void ConfigTranslator::setConstants() {
  for (const GgufConstant &constant : architecture->constants) {
    if (config.get(constant.config))
      continue;
    if (constant.value.empty())
      set(constant.config, model.findTensor(constant.tensor) != nullptr, constant.tensor);
    else
      set(constant.config, llvm::cantFail(llvm::json::parse(constant.value)),
          "general.architecture");
  }
}

/// What stands in the tensors alone: the vocabulary, and whether the head is the embedding.
llvm::Error ConfigTranslator::setShape() {
  const GgufTensor *embedding = model.findTensor(tokenEmbedding);
  if (!embedding || embedding->shape.size() != 2)
    return inputError(path, "has no matrix " + inQuotes(tokenEmbedding), remedy::fetch);
  set("vocab_size", embedding->shape.front(), tokenEmbedding);
  set("tie_word_embeddings", model.findTensor("output.weight") == nullptr, "output.weight");
  // Heads of latents say themselves what of them turns.
  if (find("attention.kv_lora_rank"))
    return llvm::Error::success();
  // A part of a head that turns is what the family calls a factor.
  const GgufValue *turning = find("rope.dimension_count"), *head = find("attention.key_length"),
                  *hidden = find("embedding_length"), *heads = find("attention.head_count");
  auto width = [](const GgufValue *value) { return value ? value->integer().value_or(0) : 0; };
  int64_t size = width(head) ? width(head) : width(heads) > 0 ? width(hidden) / width(heads) : 0;
  bool isPart = !architecture->turnedPart.empty();
  if (turning && size > 0 && (isPart || width(turning) != size))
    set(isPart ? architecture->turnedPart : "partial_rotary_factor",
        double(width(turning)) / double(size), own("rope.dimension_count"));
  return llvm::Error::success();
}

void ConfigTranslator::setTokens() {
  if (const GgufValue *begin = model.find(beginKey))
    set("bos_token_id", toJson(*begin), beginKey);
  llvm::json::Array ends;
  for (llvm::StringRef key : endKeys)
    if (const GgufValue *end = model.find(key)) {
      ends.push_back(toJson(*end));
      origins.emplace_back("eos_token_id", key.str());
    }
  if (!ends.empty())
    config["eos_token_id"] = std::move(ends);
}

llvm::Error ConfigTranslator::readSampling(ModelConfig &model) {
  llvm::json::Object sampling;
  for (auto [key, name] : samplingKeys)
    if (const GgufValue *value = this->model.find(key)) {
      sampling[name] = toJson(*value);
      origins.emplace_back(name.str(), key.str());
    }
  // Numbers are there only to be sampled by.
  if (!sampling.empty())
    sampling["do_sample"] = true;
  return readGeneration(sampling, path, model.generation, model.ignored);
}

/// Numbers that follow from others. Of latents, newer files say how large heads are that read them
/// without making keys and values of them.
llvm::Error ConfigTranslator::checkShape(const ModelConfig &config) {
  using Sizes = llvm::SmallVector<int64_t, 2>;
  const LayerKind &kind = config.kinds.front();
  const AttentionConfig &attention = kind.attention;
  Sizes keys = {attention.headDim}, values = {attention.valueDim}, heads = {attention.kvHeads};
  if (const std::optional<LatentConfig> &latent = attention.latent) {
    keys.push_back(latent->rank + latent->turnedDim);
    values.push_back(latent->rank);
    heads.push_back(1);
  }
  llvm::SmallVector<std::pair<llvm::StringLiteral, Sizes>> wanted = {
      {"attention.key_length", keys},
      {"attention.value_length", values},
      {"attention.head_count_kv", heads},
      {"rope.dimension_count", {attention.rope.dimensions}}};
  if (auto *dense = std::get_if<DenseConfig>(&kind.ffn))
    wanted.push_back({"feed_forward_length", {dense->inner}});
  for (const auto &[name, sizes] : wanted)
    if (const GgufValue *value = find(name); value && llvm::none_of(sizes, [&](int64_t size) {
                                               return toJson(*value) == llvm::json::Value(size);
                                             }))
      return refuse(own(name), *value, llvm::Twine(sizes.front()) + " (nothing else is computed)");
  return llvm::Error::success();
}

/// What the converter did to rows of q and k and to gains.
void ConfigTranslator::applyConversion(ModelConfig &config) const {
  if (architecture->names)
    config.names = architecture->names(model);
  if (architecture->addedToGains)
    config.norm.gainOffset = 0;
  for (LayerKind &kind : config.kinds) {
    AttentionConfig &attention = kind.attention;
    if (architecture->pairing != Pairing::Half)
      attention.rope.pairing = architecture->pairing;
    if (architecture->addedToGains)
      attention.norm.gainOffset = 0;
  }
}

/// The family speaks of the keys of config.json: puts those of this file in their places.
llvm::Error ConfigTranslator::inOwnWords(llvm::Error error) const {
  return renameQuoted(std::move(error), [&](llvm::StringRef quoted) {
    for (const auto &[name, key] : llvm::reverse(origins))
      if (name == quoted)
        return key;
    for (llvm::ArrayRef<GgufKey> rows : {architecture->keys, ggufCommonKeys()})
      for (const GgufKey &row : rows)
        if (row.config == quoted)
          return own(row.name);
    return quoted.str();
  });
}

llvm::Expected<ModelConfig> ConfigTranslator::translate() {
  if (llvm::Error error = chooseArchitecture())
    return std::move(error);
  if (llvm::Error error = translateKeys())
    return std::move(error);
  if (llvm::Error error = checkComplete())
    return std::move(error);
  setConstants();
  if (llvm::Error error = setShape())
    return std::move(error);
  setTokens();
  if (llvm::Error error = addGgufRopeScaling(model, architecture->name, config, origins))
    return std::move(error);
  if (architecture->derive)
    architecture->derive(model, config);
  auto result = modelConfigFrom(config, path, nullptr);
  if (!result)
    return inOwnWords(result.takeError());
  if (llvm::Error error = checkShape(*result))
    return std::move(error);
  applyConversion(*result);
  if (llvm::Error error = readSampling(*result))
    return inOwnWords(std::move(error));
  // Both lists are of this file; that of the family has nothing to say of keys that were set here.
  llvm::erase_if(result->ignored, [](const IgnoredKey &key) { return key.key == "model_type"; });
  llvm::append_range(result->ignored, ignored);
  llvm::sort(result->ignored,
             [](const IgnoredKey &a, const IgnoredKey &b) { return a.key < b.key; });
  return result;
}

} // namespace

llvm::Expected<ModelConfig> readGgufConfig(const GgufModel &model) {
  return ConfigTranslator(model).translate();
}

} // namespace mica
