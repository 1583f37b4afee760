#include "frontend/config/gguf/GgufConfig.h"

#include "frontend/config/GenerationReader.h"
#include "frontend/config/KeyReader.h"
#include "frontend/config/ModelBuilder.h"
#include "frontend/config/gguf/GgufRope.h"
#include "frontend/families/Family.h"
#include "frontend/families/GgufArchitecture.h"
#include "frontend/families/Registry.h"
#include "frontend/support/InputError.h"
#include "frontend/support/Json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/GlobPattern.h"

namespace mica {
namespace {

constexpr llvm::StringLiteral architectureKey = "general.architecture";
constexpr llvm::StringLiteral tokenEmbedding = "token_embd.weight";

/// A sampling setting of llama.cpp: its key, its name in transformers or in GenerationReader, and
/// llama.cpp's default, unless that has no effect.
struct SamplingKey {
  llvm::StringLiteral name, parameter;
  std::optional<double> absent = std::nullopt;
};
constexpr SamplingKey samplingKeys[] = {
    {"general.sampling.temp", "temperature", 0.8},
    {"general.sampling.top_k", "top_k", 40},
    {"general.sampling.top_p", "top_p", 0.95},
    {"general.sampling.min_p", "min_p", 0.05},
    {"general.sampling.penalty_repeat", "repetition_penalty"},
    {"general.sampling.penalty_last_n", "penalty_last_n"},
    {"general.sampling.xtc_probability", "xtc_probability"},
    {"general.sampling.xtc_threshold", "xtc_threshold"},
    {"general.sampling.mirostat", "mirostat"},
    {"general.sampling.mirostat_tau", "mirostat_tau"},
    {"general.sampling.mirostat_eta", "mirostat_eta"},
    {"general.sampling.sequence", "sequence"},
};

/// Ids that end a text, a turn, a message.
constexpr llvm::StringLiteral endKeys[] = {
    "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
constexpr llvm::StringLiteral beginKey = "tokenizer.ggml.bos_token_id";

/// The architecture of a file and the family that implements it.
struct Architecture {
  const GgufArchitecture &row;
  const Family &family;
  llvm::StringRef name; ///< as in the file
};

std::string knownArchitectures() {
  std::vector<llvm::StringRef> names;
  for (const FamilyEntry &entry : familyEntries())
    if (entry.gguf)
      for (llvm::StringRef name : {entry.gguf->name, entry.gguf->sparseName})
        if (!name.empty())
          names.push_back(name);
  llvm::sort(names);
  names.erase(llvm::unique(names), names.end());
  return llvm::join(names, ", ");
}

/// Chooses among families with the same architecture name by the keys of the file.
llvm::Expected<Architecture> chooseArchitecture(const GgufModel &model) {
  const GgufValue *value = model.find(architectureKey);
  auto name = value ? value->string() : std::nullopt;
  if (!name)
    return inputError(model.path(), "has no key " + inQuotes(architectureKey) + " with a name",
                      hints::fetch);
  GgufKeys keys(model, *name);
  const FamilyEntry *found = nullptr;
  for (const FamilyEntry &entry : familyEntries())
    if (entry.gguf && entry.gguf->isNamed(*name) &&
        (entry.gguf->matches ? entry.gguf->matches(keys) : !found))
      found = &entry;
  if (!found)
    return inputError(model.path(),
                      "has the architecture " + inQuotes(*name) + ", which is unknown",
                      "choose a model of one of the architectures " + knownArchitectures());
  auto family = found->choose({model.path(), nullptr, nullptr});
  if (!family)
    return family.takeError();
  return Architecture{*found->gguf, **family, *name};
}

class ConfigReader {
public:
  ConfigReader(const GgufModel &model, Architecture architecture)
      : model(model), row(architecture.row), family(architecture.family), name(architecture.name),
        keys(model, name) {}

  llvm::Expected<ModelConfig> read();

private:
  llvm::Error refuse(llvm::StringRef name, const llvm::json::Value &value,
                     const llvm::Twine &expected) const;
  llvm::Error checkGeneral(llvm::StringRef key, const GgufValue &value);
  llvm::Error checkGeneral();
  llvm::Expected<Hyperparameters> readFacts(const KeyTables &tables);
  llvm::Error readTensors(Hyperparameters &h) const;
  llvm::Error readTokens(Hyperparameters &h) const;
  llvm::Error checkRope(const NamedParameters &rope) const;
  llvm::Error readSampling(ModelConfig &config) const;
  llvm::Error checkShape(const ModelConfig &config) const;
  void applyConversion(ModelConfig &config) const;

  const GgufModel &model;
  const GgufArchitecture &row;
  const Family &family;
  llvm::StringRef name; ///< of the architecture
  GgufKeys keys;
  std::vector<IgnoredKey> ignored;
};

llvm::Error ConfigReader::refuse(llvm::StringRef name, const llvm::json::Value &value,
                                 const llvm::Twine &expected) const {
  return inputError(model.path(),
                    "has " + inQuotes(name) + ": " + shown(value) + ", expected " + expected,
                    hints::otherModel);
}

/// A key without the prefix of the architecture.
llvm::Error ConfigReader::checkGeneral(llvm::StringRef key, const GgufValue &value) {
  if (key.starts_with("tokenizer."))
    return llvm::Error::success(); // checked by its reader
  if (key == "general.type" && value.string() != "model")
    return refuse(key, valueOf(value), "\"model\"");
  bool hasBlocks = llvm::any_of(model.tensors(),
                                [](const GgufTensor &tensor) { return !tensor.type->isPlain(); });
  if (key == "general.quantization_version" && hasBlocks && value.integer() != 2)
    return refuse(key, valueOf(value), "2");
  if (llvm::any_of(samplingKeys, [&](const SamplingKey &row) { return row.name == key; }))
    return llvm::Error::success();
  if (auto reason = reasonGgufKeyIsIrrelevant(key)) {
    if (*reason != reasons::used)
      ignored.push_back({model.path().str(), key.str(), reason->str()});
    return llvm::Error::success();
  }
  return inputError(model.path(), "has the key " + inQuotes(key) + ", which is unknown",
                    "remove it if it has no effect");
}

llvm::Error ConfigReader::checkGeneral() {
  std::vector<llvm::StringRef> names;
  std::string own = keys.named("");
  for (const auto &entry : model.metadata())
    if (!entry.getKey().starts_with(own))
      names.push_back(entry.getKey());
  llvm::sort(names); // so that the same one of several invalid keys is reported every time
  for (llvm::StringRef name : names)
    if (llvm::Error error = checkGeneral(name, *model.find(name)))
      return error;
  return llvm::Error::success();
}

/// Properties that only the tensors show: vocabulary size, tied embeddings, and flags.
llvm::Error ConfigReader::readTensors(Hyperparameters &h) const {
  const GgufTensor *embedding = model.findTensor(tokenEmbedding);
  if (!embedding || embedding->shape.size() != 2)
    return inputError(model.path(), "has no matrix " + inQuotes(tokenEmbedding), hints::fetch);
  auto vocab = embedding->shape.front();
  if (double(vocab) < ranges::vocab.min || double(vocab) > ranges::vocab.max)
    return inputError(model.path(),
                      "has " + llvm::Twine(vocab) + " rows in " + inQuotes(tokenEmbedding) +
                          ", which no vocabulary has",
                      hints::fetch);
  h.vocab = vocab;
  h.tiedHead = model.findTensor("output.weight") == nullptr;
  for (const GgufFlag &flag : row.flags) {
    llvm::GlobPattern pattern = llvm::cantFail(llvm::GlobPattern::create(flag.tensor));
    h.*flag.slot = llvm::any_of(
        model.tensors(), [&](const GgufTensor &tensor) { return pattern.match(tensor.name); });
  }
  return llvm::Error::success();
}

llvm::Error ConfigReader::readTokens(Hyperparameters &h) const {
  auto read = [&](llvm::StringRef key) -> llvm::Expected<std::optional<int64_t>> {
    const GgufValue *value = model.find(key);
    if (!value)
      return std::nullopt;
    auto id = readInteger(model.path(), key, valueOf(*value), ranges::token);
    if (!id)
      return id.takeError();
    return *id;
  };
  auto begin = read(beginKey);
  if (!begin)
    return begin.takeError();
  h.bos = *begin;
  for (llvm::StringRef key : endKeys) {
    auto end = read(key);
    if (!end)
      return end.takeError();
    if (*end)
      h.eos.push_back(**end);
  }
  return llvm::Error::success();
}

llvm::Expected<Hyperparameters> ConfigReader::readFacts(const KeyTables &tables) {
  auto h = readKeys(keys, tables, ignored);
  if (!h)
    return h.takeError();
  if (llvm::Error error = readTensors(*h))
    return std::move(error);
  if (llvm::Error error = readTokens(*h))
    return std::move(error);
  if (row.derive)
    if (llvm::Error error = row.derive(keys, *h))
      return std::move(error);
  return h;
}

/// Rejects keys of rope scaling for families without rope.
llvm::Error ConfigReader::checkRope(const NamedParameters &rope) const {
  constexpr llvm::StringLiteral type = "rope_type";
  if (family.traits.rope || *rope.find(type) == llvm::json::Value("default"))
    return llvm::Error::success();
  return inputError(model.path(),
                    "has " + inQuotes(rope.named(type)) + ", but " + name + " has no rope",
                    hints::otherModel);
}

llvm::Error ConfigReader::readSampling(ModelConfig &config) const {
  NamedParameters sampling(model.path());
  for (const SamplingKey &key : samplingKeys)
    if (const GgufValue *value = model.find(key.name))
      sampling.add(key.parameter, valueOf(*value), key.name);
  // Numbers only occur as sampling settings.
  if (!sampling.keys().empty()) {
    config.generation.doSample = true;
    for (const SamplingKey &key : samplingKeys)
      if (key.absent && !sampling.find(key.parameter))
        sampling.add(key.parameter, *key.absent, key.name);
  }
  return readGeneration(sampling, config.generation, config.ignored);
}

/// Checks numbers that follow from others. For MLA, newer files contain the sizes of heads that
/// read latents directly, without expanded keys and values.
llvm::Error ConfigReader::checkShape(const ModelConfig &config) const {
  using Sizes = llvm::SmallVector<int64_t, 2>;
  // If heads differ by layer, the keys are those of layers without a window.
  llvm::ArrayRef<LayerType> kinds = config.layerTypes;
  const LayerType *global =
      llvm::find_if(kinds, [](const LayerType &other) { return !other.attention.window; });
  const LayerType &kind = global == kinds.end() ? kinds.front() : *global;
  const AttentionConfig &attention = kind.attention;
  Sizes heads = {attention.kvHeads}, keySizes = {attention.headDim},
        valueSizes = {attention.valueDim};
  if (const std::optional<LatentConfig> &latent = attention.latent) {
    keySizes.push_back(latent->rank + latent->qkRopeHeadDim);
    valueSizes.push_back(latent->rank);
    heads.push_back(1);
  }
  llvm::SmallVector<std::pair<llvm::StringLiteral, Sizes>> wanted = {
      {"attention.key_length", keySizes}, {"attention.value_length", valueSizes}};
  // Without rope nothing is rotated, whatever the file says.
  if (attention.rope.dimensions != 0)
    wanted.push_back({"rope.dimension_count", {attention.rope.dimensions}});
  // If layers differ, these values are arrays with one entry per layer.
  if (llvm::all_of(config.layerTypes, [&](const LayerType &other) {
        return other.hasAttention() && other.attention.kvHeads == attention.kvHeads;
      }))
    wanted.push_back({"attention.head_count_kv", heads});
  auto *dense = std::get_if<DenseConfig>(&kind.ffn);
  bool allHaveFfn = llvm::none_of(config.layerTypes, [&](const LayerType &other) {
    auto *ofOther = std::get_if<DenseConfig>(&other.ffn);
    return std::holds_alternative<std::monostate>(other.ffn) ||
           (dense && ofOther && ofOther->inner != dense->inner);
  });
  if (dense && allHaveFfn)
    wanted.push_back({"feed_forward_length", {dense->inner}});
  for (const auto &[name, sizes] : wanted)
    if (const llvm::json::Value *value = keys.find(name);
        value &&
        llvm::none_of(sizes, [&](int64_t size) { return *value == llvm::json::Value(size); }))
      return refuse(keys.named(name), *value,
                    llvm::Twine(sizes.front()) + " (nothing else is supported)");
  return llvm::Error::success();
}

/// Marks what the converter has changed: rows of q and k, norm weights, the order of heads.
void ConfigReader::applyConversion(ModelConfig &config) const {
  config.gguf = &row;
  if (row.names)
    config.names = row.names(model);
  if (row.addedToNormWeights)
    config.norm.weightOffset = 0;
  for (LayerType &kind : config.layerTypes) {
    AttentionConfig &attention = kind.attention;
    if (row.pairing)
      attention.rope.pairing = *row.pairing;
    if (row.addedToNormWeights)
      attention.norm.weightOffset = 0;
    if (auto *delta = std::get_if<DeltaNetConfig>(&kind.stateMixer))
      delta->headsInterleaved = row.valueHeadsInterleaved;
  }
}

llvm::Expected<ModelConfig> ConfigReader::read() {
  if (llvm::Error error = checkGeneral())
    return std::move(error);
  // Rope scaling is read separately.
  llvm::SmallVector<IgnoredKeyRow> ignoredKeys(row.ignoredKeys);
  for (llvm::ArrayRef<GgufRopeKey> ropeKeys : {ggufCommonRopeKeys(), row.ropeKeys})
    for (const GgufRopeKey &key : ropeKeys)
      ignoredKeys.push_back({key.name, reasons::used});
  KeyTables tables = {name,
                      {row.keys, row.fixed, ignoredKeys},
                      {{}, ggufCommonFixedKeys(), ggufCommonIgnoredKeys()}};
  auto h = readFacts(tables);
  if (!h)
    return h.takeError();
  auto rope = readGgufRope(keys, row, h->theta.value_or(family.traits.defaultTheta));
  if (!rope)
    return rope.takeError();
  if (llvm::Error error = checkRope(*rope))
    return std::move(error);
  h->ropeKeys = &*rope;
  auto config = buildModelConfig(std::move(*h), family, KeyNames(keys, tables));
  if (!config)
    return config.takeError();
  if (llvm::Error error = checkShape(*config))
    return std::move(error);
  applyConversion(*config);
  config->ignored = std::move(ignored);
  if (llvm::Error error = readSampling(*config))
    return std::move(error);
  if (llvm::Error error = finishModelConfig(*config, model.path()))
    return std::move(error);
  return config;
}

} // namespace

llvm::Expected<ModelConfig> readGgufConfig(const GgufModel &model) {
  auto architecture = chooseArchitecture(model);
  if (!architecture)
    return architecture.takeError();
  return ConfigReader(model, *architecture).read();
}

} // namespace mica
