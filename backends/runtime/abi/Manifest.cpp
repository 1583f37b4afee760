#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/ParseCaches.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace mica::rt {

namespace {
using Json = nlohmann::json;

/// Thrown inside this file only and caught by parseManifest and parseCaches.
struct Bad {
  std::string message;
};

[[noreturn]] void bad(const std::string &key, const std::string &what) {
  throw Bad{"the program's manifest: '" + key + "' " + what + "; compile it again"};
}

const Json &at(const Json &object, const std::string &key) {
  auto found = object.find(key);
  if (found == object.end())
    bad(key, "is missing");
  return *found;
}

int64_t integer(const Json &value, const std::string &key, int64_t least, int64_t most) {
  bool fits = value.is_number_integer() &&
              !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(most));
  if (!fits || value.get<int64_t>() < least || value.get<int64_t>() > most)
    bad(key, "is not an integer from " + std::to_string(least) + " to " + std::to_string(most));
  return value.get<int64_t>();
}

constexpr int64_t maxDimension = int64_t(1) << 40;
constexpr int64_t maxToken = std::numeric_limits<int32_t>::max();

uint64_t bytes(const Json &value, const std::string &key) {
  return static_cast<uint64_t>(integer(value, key, 0, int64_t(1) << 50));
}

std::string text(const Json &value, const std::string &key) {
  if (!value.is_string())
    bad(key, "is not a string");
  return value.get<std::string>();
}

Precision precision(const Json &value, const std::string &key) {
  std::string name = text(value, key);
  std::optional<Precision> known = precisionNamed(name);
  if (!known)
    bad(key, "names the unknown precision '" + name + "'");
  return *known;
}

// Parts of a document, which outlives what is returned.
const Json &array(Json &&, const std::string &) = delete;
const Json &object(Json &&, const std::string &) = delete;

const Json &array(const Json &value, const std::string &key) {
  if (!value.is_array())
    bad(key, "is not an array");
  return value;
}

const Json &object(const Json &value, const std::string &key) {
  if (!value.is_object())
    bad(key, "is not an object");
  return value;
}

std::optional<double> number(const Json &object, const std::string &key) {
  auto found = object.find(key);
  if (found == object.end() || found->is_null())
    return std::nullopt;
  if (!found->is_number())
    bad(key, "is not a number");
  return found->get<double>();
}

EntryRole parseRole(const Json &json, const std::vector<EntryRole> &earlier) {
  std::string name = text(json, "arguments");
  std::optional<EntryRole> role = entryRoleNamed(name);
  if (!role)
    bad("arguments", "names the unknown role '" + name + "'");
  if (!infoOf(*role).isRepeated &&
      std::find(earlier.begin(), earlier.end(), *role) != earlier.end())
    bad("arguments", "names the role '" + name + "' twice");
  return *role;
}

/// What the model's code takes.
void parseEntry(const Json &json, Manifest &m) {
  object(json, "entry");
  int64_t abi = integer(at(json, "abi"), "abi", 1, std::numeric_limits<int32_t>::max());
  if (abi != kEntryAbi)
    bad("abi", "is " + std::to_string(abi) + ", expected " + std::to_string(kEntryAbi));
  for (const Json &role : array(at(json, "arguments"), "arguments"))
    m.arguments.push_back(parseRole(role, m.arguments));
  auto count = [&](EntryRole role) {
    return static_cast<size_t>(std::count(m.arguments.begin(), m.arguments.end(), role));
  };
  for (const EntryRoleInfo &info : kEntryRoles)
    if (!info.isOptional && count(info.role) == 0)
      bad("arguments", "lacks the role '" + std::string(info.name) + "'");
  if (count(EntryRole::Cache) != m.caches.size())
    bad("arguments", "names " + std::to_string(count(EntryRole::Cache)) +
                         " caches, but 'caches' has " + std::to_string(m.caches.size()));
}

CacheSpec parseCache(const Json &json) {
  object(json, "caches");
  CacheSpec cache{text(at(json, "name"), "name"), precision(at(json, "element"), "element"), {}};
  if (cache.elementBytes() == 0)
    bad("element",
        "of a cache is " + std::string(infoOf(cache.element).name) + ", which caches never have");
  for (const Json &size : array(at(json, "shape"), "shape"))
    cache.shape.push_back(integer(size, "shape", CacheSpec::blockCount, maxDimension));
  cache.bytesPerToken = bytes(at(json, "bytes_per_token"), "bytes_per_token");
  if (auto window = json.find("window"); window != json.end())
    cache.window = integer(*window, "window", 1, maxToken);
  if (auto slots = json.find("slots"); slots != json.end()) {
    cache.slots = integer(*slots, "slots", 1, maxToken);
    if (cache.window == 0 || cache.window > cache.slots)
      bad("slots", "of a state are fewer than its window");
  }
  return cache;
}

Manifest::Generation parseGeneration(const Json &json) {
  object(json, "generation");
  Manifest::Generation g;
  g.temperature = number(json, "temperature");
  g.topP = number(json, "top_p");
  g.minP = number(json, "min_p");
  g.typicalP = number(json, "typical_p");
  g.repetitionPenalty = number(json, "repetition_penalty");
  if (auto k = json.find("top_k"); k != json.end() && !k->is_null())
    g.topK = integer(*k, "top_k", 0, maxToken);
  if (auto s = json.find("do_sample"); s != json.end() && s->is_boolean())
    g.doSample = s->get<bool>();
  return g;
}

Manifest::Chat parseChat(const Json &json) {
  object(json, "chat");
  Manifest::Chat chat{text(at(json, "template"), "template"), {}, std::nullopt};
  if (auto own = json.find("tool_template"); own != json.end())
    chat.toolTemplate = text(*own, "tool_template");
  for (const auto &[name, token] : object(at(json, "special_tokens"), "special_tokens").items())
    chat.specialTokens.emplace_back(name, text(token, "special_tokens"));
  return chat;
}

void parseKernels(const Json &json, Manifest &m) {
  for (const auto &[kernel, places] : object(json, "kernels").items())
    for (const Json &place : array(places, "kernels"))
      m.kernels[kernel].push_back(text(place, "kernels"));
}

/// The values that determine the memory of caches.
void parseReservations(const Json &json, Manifest &m) {
  m.maxSeq = integer(at(json, "max_seq"), "max_seq", 1, maxToken);
  m.positionBlock = integer(at(json, "position_block"), "position_block", 1, maxToken);
  if (auto positions = json.find("rewind_positions"); positions != json.end())
    m.rewindPositions = integer(*positions, "rewind_positions", 0, maxToken);
  if (auto rows = json.find("batch_invariant_rows"); rows != json.end())
    m.batchInvariantRows = integer(*rows, "batch_invariant_rows", 1, maxToken);
  for (const Json &cache : array(at(json, "caches"), "caches"))
    m.caches.push_back(parseCache(cache));
}

/// Tensors by type; empty where there are none.
std::map<std::string, int64_t> parseTensorCounts(const Json &json, const std::string &key) {
  std::map<std::string, int64_t> counts;
  if (auto types = json.find(key); types != json.end())
    for (const auto &[type, count] : object(*types, key).items())
      counts[type] = integer(count, key, 1, maxToken);
  return counts;
}

void parseModel(const Json &json, Manifest &m) {
  m.name = text(at(json, "name"), "name");
  m.weights = precision(at(json, "weights"), "weights");
  m.kv = precision(at(json, "kv"), "kv");
  m.blockFormats = parseTensorCounts(json, "block_formats");
  m.floatTypes = parseTensorCounts(json, "float_types");
  if (auto rows = json.find("rows"); rows != json.end())
    for (const auto &[role, type] : object(*rows, "rows").items())
      m.rows.emplace_back(role, text(type, "rows"));
  m.vocab = integer(at(json, "vocab"), "vocab", 1, maxToken);
  parseReservations(json, m);
  m.maxPositions = integer(at(json, "max_positions"), "max_positions", m.maxSeq, maxToken);
  parseEntry(at(json, "entry"), m);
  const Json &scratch = object(at(json, "scratch"), "scratch");
  m.scratchBytesPerRow = bytes(at(scratch, "bytes_per_row"), "bytes_per_row");
  m.scratchBytesFixed = bytes(at(scratch, "bytes_fixed"), "bytes_fixed");
  if (auto size = json.find("weight_bytes"); size != json.end())
    m.weightBytes = bytes(*size, "weight_bytes");
  if (auto count = json.find("parameters"); count != json.end())
    m.parameters = bytes(*count, "parameters");
  if (auto depends = json.find("depends_on_role"); depends != json.end()) {
    if (!depends->is_boolean())
      bad("depends_on_role", "is not true or false");
    m.dependsOnRole = depends->get<bool>();
  }
  if (auto thresholds = json.find("rope_length_thresholds"); thresholds != json.end()) {
    for (const Json &threshold : array(*thresholds, "rope_length_thresholds"))
      m.ropeLengthThresholds.push_back(integer(threshold, "rope_length_thresholds", 1, maxToken));
    std::sort(m.ropeLengthThresholds.begin(), m.ropeLengthThresholds.end());
  }
  if (auto kernels = json.find("kernels"); kernels != json.end())
    parseKernels(*kernels, m);
}

void parseTokens(const Json &json, Manifest &m) {
  if (auto bos = json.find("bos"); bos != json.end() && !bos->is_null())
    m.bos = static_cast<int32_t>(integer(*bos, "bos", 0, m.vocab - 1));
  if (auto eos = json.find("eos"); eos != json.end() && !eos->is_null())
    for (const Json &id : array(*eos, "eos"))
      m.eos.push_back(static_cast<int32_t>(integer(id, "eos", 0, m.vocab - 1)));
}

Manifest parse(const Json &json) {
  object(json, "manifest");
  Manifest m;
  const Json &target = object(at(json, "target"), "target");
  m.cpu = text(at(target, "cpu"), "cpu");
  for (const Json &feature : array(at(target, "features"), "features"))
    m.features.push_back(text(feature, "features"));
  parseModel(json, m);
  parseTokens(json, m);
  if (auto generation = json.find("generation"); generation != json.end() && !generation->is_null())
    m.generation = parseGeneration(*generation);
  if (auto chat = json.find("chat"); chat != json.end())
    m.chat = parseChat(*chat);
  if (auto cost = json.find("cost"); cost != json.end() && cost->is_object())
    m.cost = {number(*cost, "weight_bytes_per_token").value_or(0),
              number(*cost, "flops_per_token").value_or(0),
              number(*cost, "flops_per_logits").value_or(0),
              number(*cost, "kv_bytes_per_position").value_or(0)};
  return m;
}
} // namespace

Result<Manifest> parseManifest(std::string_view text) {
  try {
    Manifest manifest = parse(Json::parse(text));
    manifest.json = text;
    return manifest;
  } catch (const Bad &bad) {
    return Error{bad.message};
  } catch (const Json::exception &) {
    return Error{"the program's manifest is not JSON; compile it again"};
  }
}

Result<Manifest> parseCaches(const Json &json) {
  try {
    Manifest manifest;
    parseReservations(json, manifest);
    return manifest;
  } catch (const Bad &bad) {
    return Error{bad.message};
  }
}

bool Manifest::takesLengths() const {
  return std::find(arguments.begin(), arguments.end(), EntryRole::Lengths) != arguments.end();
}

std::string Manifest::largerContextHint() const {
  return maxSeq < maxPositions ? " or compile with a larger --max-seq" : "";
}

uint64_t cacheBytesPerToken(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const CacheSpec &cache : manifest.caches)
    bytes += cache.bytesPerToken;
  return bytes;
}

int64_t blocksOfCache(const Manifest &manifest, const CacheSpec &cache, int64_t rows) {
  int64_t positions = manifest.maxSeq;
  // The ring must not overwrite a row's window with later rows that are stored already: those of
  // the same call, or those that a rewind drops.
  if (cache.window > 0)
    positions = std::min(positions, cache.window + std::max({rows, manifest.batchInvariantRows,
                                                             manifest.rewindPositions}));
  return (positions + manifest.positionBlock - 1) / manifest.positionBlock;
}

int64_t positionsOfCache(const Manifest &manifest, const CacheSpec &cache, int64_t rows) {
  return cache.slots > 0 ? cache.slots
                         : blocksOfCache(manifest, cache, rows) * manifest.positionBlock;
}

uint64_t CacheSpec::elementBytes() const {
  return static_cast<uint64_t>(infoOf(element).cacheBytes);
}

uint64_t stateBytes(const CacheSpec &cache) {
  uint64_t bytes = cache.slots > 0 ? cache.elementBytes() : 0;
  for (int64_t size : cache.shape)
    if (size > 0)
      bytes *= static_cast<uint64_t>(size);
  return bytes;
}

uint64_t stateBytesPerSequence(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const CacheSpec &cache : manifest.caches)
    bytes += stateBytes(cache);
  return bytes;
}

uint64_t cacheBytesPerSequence(const Manifest &manifest, int64_t rows) {
  uint64_t bytes = stateBytesPerSequence(manifest);
  for (const CacheSpec &cache : manifest.caches)
    bytes +=
        cache.bytesPerToken *
        static_cast<uint64_t>(std::min(manifest.maxSeq, positionsOfCache(manifest, cache, rows)));
  return bytes;
}

uint64_t bytesOfCall(const Manifest &manifest, int64_t rows, int64_t withLogits) {
  return manifest.scratchBytesFixed + static_cast<uint64_t>(rows) * manifest.scratchBytesPerRow +
         static_cast<uint64_t>(withLogits) * static_cast<uint64_t>(manifest.vocab) * sizeof(float);
}

int64_t prefillChunkSize(std::optional<int64_t> asked, const Manifest &manifest, bool allLogits) {
  if (asked)
    return *asked;
  constexpr int64_t least = 16;
  int64_t rows = kMaxPromptRows;
  while (rows > least && bytesOfCall(manifest, rows, allLogits ? rows : 0) > kMaxStepBytes)
    rows /= 2;
  return rows;
}

} // namespace mica::rt
