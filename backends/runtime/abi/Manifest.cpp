#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/ManifestKeys.h"
#include "ir/Entry/Ranks.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

namespace mica::rt {

namespace {
using Json = nlohmann::json;
namespace keys = manifest_keys;

/// An error; thrown only within this file, and caught by parseManifest and parseCaches.
struct Bad {
  std::string message;
};

[[noreturn]] void bad(ManifestKey key, const std::string &what) {
  throw Bad{std::string("the program's manifest: '") + key.text + "' " + what +
            "; compile it again"};
}

/// The value of a key; null: absent.
const Json *find(const Json &object, ManifestKey key) {
  auto found = object.find(key.text);
  return found == object.end() ? nullptr : &*found;
}

/// The value of a key; null: absent or null.
const Json *findValue(const Json &object, ManifestKey key) {
  const Json *found = find(object, key);
  return found && !found->is_null() ? found : nullptr;
}

const Json &at(const Json &object, ManifestKey key) {
  const Json *found = find(object, key);
  if (!found)
    bad(key, "is missing");
  return *found;
}

// Each of these checks the value of a key.

int64_t integer(const Json &value, ManifestKey key, int64_t min, int64_t max) {
  bool fits = value.is_number_integer() &&
              !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(max));
  if (!fits || value.get<int64_t>() < min || value.get<int64_t>() > max)
    bad(key, "is not an integer from " + std::to_string(min) + " to " + std::to_string(max));
  return value.get<int64_t>();
}

constexpr int64_t maxDimension = int64_t(1) << 40;
constexpr int64_t maxToken = std::numeric_limits<int32_t>::max();

uint64_t bytes(const Json &value, ManifestKey key) {
  return static_cast<uint64_t>(integer(value, key, 0, int64_t(1) << 50));
}

std::string text(const Json &value, ManifestKey key) {
  if (!value.is_string())
    bad(key, "is not a string");
  return value.get<std::string>();
}

bool boolean(const Json &value, ManifestKey key) {
  if (!value.is_boolean())
    bad(key, "is not true or false");
  return value.get<bool>();
}

double number(const Json &value, ManifestKey key) {
  if (!value.is_number())
    bad(key, "is not a number");
  return value.get<double>();
}

std::string textOf(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

double number(const Json &value, ManifestKey key, SettingRange<double> range) {
  double found = number(value, key);
  if (!range.contains(found))
    bad(key, "is not a number from " + textOf(range.min) + " to " + textOf(range.max));
  return found;
}

Precision precision(const Json &value, ManifestKey key) {
  std::string name = text(value, key);
  std::optional<Precision> known = precisionNamed(name);
  if (!known)
    bad(key, "names the unknown precision '" + name + "'");
  return *known;
}

const Json &array(const Json &value, ManifestKey key) {
  if (!value.is_array())
    bad(key, "is not an array");
  return value;
}

const Json &object(const Json &value, ManifestKey key) {
  if (!value.is_object())
    bad(key, "is not an object");
  return value;
}

// These return references into the document, so temporaries are not accepted.
const Json &array(Json &&, ManifestKey) = delete;
const Json &object(Json &&, ManifestKey) = delete;

EntryRole parseRole(const Json &json, const std::vector<EntryRole> &earlier) {
  std::string name = text(json, keys::arguments);
  std::optional<EntryRole> role = entryRoleNamed(name);
  if (!role)
    bad(keys::arguments, "names the unknown role '" + name + "'");
  if (!infoOf(*role).isRepeated &&
      std::find(earlier.begin(), earlier.end(), *role) != earlier.end())
    bad(keys::arguments, "names the role '" + name + "' twice");
  return *role;
}

/// Parses the arguments of the model's forward function.
void parseEntry(const Json &json, Manifest &m) {
  object(json, keys::entry);
  int64_t abi = integer(at(json, keys::abi), keys::abi, 1, std::numeric_limits<int32_t>::max());
  if (abi != kEntryAbi)
    bad(keys::abi, "is " + std::to_string(abi) + ", expected " + std::to_string(kEntryAbi));
  for (const Json &role : array(at(json, keys::arguments), keys::arguments))
    m.arguments.push_back(parseRole(role, m.arguments));
  auto count = [&](EntryRole role) {
    return static_cast<size_t>(std::count(m.arguments.begin(), m.arguments.end(), role));
  };
  for (const EntryRoleInfo &info : kEntryRoles)
    if (!info.isOptional && count(info.role) == 0)
      bad(keys::arguments, "lacks the role '" + std::string(info.name) + "'");
  bool takesHidden = count(EntryRole::Hidden) > 0;
  if (takesHidden != m.canDraft())
    bad(keys::hidden, takesHidden ? "is missing, but the code takes hidden rows"
                                  : "is given, but the code takes no hidden rows");
  if (count(EntryRole::Cache) != m.caches.size())
    bad(keys::arguments, "names " + std::to_string(count(EntryRole::Cache)) +
                             " caches, but 'caches' has " + std::to_string(m.caches.size()));
}

/// Parses what checkpoints of a recurrent state consist of.
void parseMatrices(const Json &json, CacheSpec &cache) {
  const Json *matrix = find(json, keys::matrix);
  if (!matrix)
    return;
  cache.matrix = integer(*matrix, keys::matrix, 1, maxDimension);
  cache.chunk = integer(at(json, keys::chunk), keys::chunk, 1, maxToken);
  if (cache.slots < 2 * cache.chunk)
    bad(keys::chunk, "of a state takes more than half of its slots");
  if (cache.shape.size() != 4 || cache.element != Precision::F32 ||
      cache.shape[3] / 2 < cache.matrix || cache.shape[3] - 2 * cache.matrix < cache.slots)
    bad(keys::matrix, "does not fit twice in a head of the state");
}

CacheSpec parseCache(const Json &json) {
  object(json, keys::caches);
  CacheSpec cache{text(at(json, keys::cacheName), keys::cacheName),
                  precision(at(json, keys::element), keys::element),
                  {}};
  if (cache.elementBytes() == 0)
    bad(keys::element,
        "of a cache is " + std::string(infoOf(cache.element).name) + ", which caches never have");
  for (const Json &size : array(at(json, keys::shape), keys::shape))
    cache.shape.push_back(integer(size, keys::shape, CacheSpec::blockCount, maxDimension));
  cache.bytesPerToken = bytes(at(json, keys::bytesPerToken), keys::bytesPerToken);
  cache.bytesReadPerPosition = cache.bytesPerToken;
  if (const Json *read = find(json, keys::bytesReadPerPosition))
    cache.bytesReadPerPosition = bytes(*read, keys::bytesReadPerPosition);
  if (const Json *window = find(json, keys::window))
    cache.window = integer(*window, keys::window, 1, maxToken);
  if (const Json *slots = find(json, keys::slots)) {
    cache.slots = integer(*slots, keys::slots, 1, maxToken);
    if (cache.window == 0 || cache.window > cache.slots)
      bad(keys::slots, "of a state are fewer than its window");
    parseMatrices(json, cache);
  }
  return cache;
}

SamplingDefaults parseGeneration(const Json &json) {
  object(json, keys::generation);
  SamplingDefaults sampling;
  auto keyNamed = [](std::string_view name) {
    return ManifestKey{keys::generation.text, name.data(), true};
  };
  for (const SamplingSetting<double> &setting : kSamplingNumbers)
    if (const Json *value = findValue(json, keyNamed(setting.name)))
      sampling.*setting.slot = number(*value, keyNamed(setting.name), setting.range);
  ManifestKey topK = keyNamed(kSamplingTopK.name), doSample = keyNamed(kDoSample);
  if (const Json *value = findValue(json, topK))
    sampling.topK = integer(*value, topK, kSamplingTopK.range.min, kSamplingTopK.range.max);
  if (const Json *value = findValue(json, doSample))
    sampling.doSample = boolean(*value, doSample);
  return sampling;
}

Manifest::Chat parseChat(const Json &json) {
  object(json, keys::chat);
  Manifest::Chat chat{text(at(json, keys::chatTemplate), keys::chatTemplate), {}, std::nullopt};
  if (const Json *own = find(json, keys::toolTemplate))
    chat.toolTemplate = text(*own, keys::toolTemplate);
  for (const auto &[name, token] :
       object(at(json, keys::specialTokens), keys::specialTokens).items())
    chat.specialTokens.emplace_back(name, text(token, keys::specialTokens));
  return chat;
}

void parseKernels(const Json &json, Manifest &m) {
  for (const auto &[kernel, places] : object(json, keys::kernels).items())
    for (const Json &place : array(places, keys::kernels))
      m.kernels[kernel].push_back(text(place, keys::kernels));
}

/// Parses the values that determine the memory of caches.
void parseReservations(const Json &json, Manifest &m) {
  m.maxSeq = integer(at(json, keys::maxSeq), keys::maxSeq, 1, maxToken);
  m.positionBlock = integer(at(json, keys::positionBlock), keys::positionBlock, 1, maxToken);
  if (const Json *positions = find(json, keys::rewindPositions))
    m.rewindPositions = integer(*positions, keys::rewindPositions, 0, maxToken);
  if (const Json *rows = find(json, keys::batchInvariantRows))
    m.batchInvariantRows = integer(*rows, keys::batchInvariantRows, 1, maxToken);
  for (const Json &cache : array(at(json, keys::caches), keys::caches))
    m.caches.push_back(parseCache(cache));
}

/// Parses the numbers of tensors by type; empty if there are none.
std::map<std::string, int64_t> parseTensorCounts(const Json &json, ManifestKey key) {
  std::map<std::string, int64_t> counts;
  if (const Json *types = find(json, key))
    for (const auto &[type, count] : object(*types, key).items())
      counts[type] = integer(count, key, 1, maxToken);
  return counts;
}

void parseModel(const Json &json, Manifest &m) {
  m.name = text(at(json, keys::name), keys::name);
  m.weights = precision(at(json, keys::weights), keys::weights);
  m.kv = precision(at(json, keys::kv), keys::kv);
  m.blockFormats = parseTensorCounts(json, keys::blockFormats);
  m.floatTypes = parseTensorCounts(json, keys::floatTypes);
  if (const Json *rows = find(json, keys::rows))
    for (const auto &[role, type] : object(*rows, keys::rows).items())
      m.rows.emplace_back(role, text(type, keys::rows));
  m.vocab = integer(at(json, keys::vocab), keys::vocab, 1, maxToken);
  if (const Json *hidden = find(json, keys::hidden))
    m.hidden = static_cast<int32_t>(integer(*hidden, keys::hidden, 1, maxToken));
  parseReservations(json, m);
  m.maxPositions = integer(at(json, keys::maxPositions), keys::maxPositions, m.maxSeq, maxToken);
  parseEntry(at(json, keys::entry), m);
  const Json &scratch = object(at(json, keys::scratch), keys::scratch);
  m.scratchBytesPerRow = bytes(at(scratch, keys::bytesPerRow), keys::bytesPerRow);
  m.scratchBytesPerOutput = bytes(at(scratch, keys::bytesPerOutput), keys::bytesPerOutput);
  m.scratchBytesFixed = bytes(at(scratch, keys::bytesFixed), keys::bytesFixed);
  if (const Json *size = find(json, keys::weightBytes))
    m.weightBytes = bytes(*size, keys::weightBytes);
  if (const Json *ranks = find(json, keys::ranks)) {
    m.ranks = integer(*ranks, keys::ranks, 2, kMaxRanks);
    if (m.weightBytes == 0)
      bad(keys::weightBytes, "is missing, but there are several ranks");
  }
  if (const Json *names = find(json, keys::replicated))
    for (const auto &[name, size] : object(*names, keys::replicated).items())
      m.replicated[name] = bytes(size, keys::replicated);
  if (const Json *size = find(json, keys::paddingBytes))
    m.paddingBytes = bytes(*size, keys::paddingBytes);
  if (const Json *size = find(json, keys::unshardedBytes))
    m.unshardedBytes = bytes(*size, keys::unshardedBytes);
  if (const Json *count = find(json, keys::parameters))
    m.parameters = bytes(*count, keys::parameters);
  if (const Json *depends = find(json, keys::dependsOnRole))
    m.dependsOnRole = boolean(*depends, keys::dependsOnRole);
  if (const Json *thresholds = find(json, keys::ropeLengthThresholds)) {
    for (const Json &threshold : array(*thresholds, keys::ropeLengthThresholds))
      m.ropeLengthThresholds.push_back(integer(threshold, keys::ropeLengthThresholds, 1, maxToken));
    std::sort(m.ropeLengthThresholds.begin(), m.ropeLengthThresholds.end());
  }
  if (const Json *grows = find(json, keys::ropeThetaGrows))
    m.ropeThetaGrows = boolean(*grows, keys::ropeThetaGrows);
  if (const Json *kernels = find(json, keys::kernels))
    parseKernels(*kernels, m);
}

void parseTokens(const Json &json, Manifest &m) {
  if (const Json *bos = findValue(json, keys::bos))
    m.bos = static_cast<int32_t>(integer(*bos, keys::bos, 0, m.vocab - 1));
  if (const Json *eos = findValue(json, keys::eos))
    for (const Json &id : array(*eos, keys::eos))
      m.eos.push_back(static_cast<int32_t>(integer(id, keys::eos, 0, m.vocab - 1)));
}

Manifest::Cost parseCost(const Json &json) {
  object(json, keys::cost);
  auto numberAt = [&](ManifestKey key) {
    const Json *value = findValue(json, key);
    return value ? number(*value, key) : 0;
  };
  return {numberAt(keys::weightBytesPerToken), numberAt(keys::flopsPerToken),
          numberAt(keys::flopsPerLogits)};
}

Manifest parse(const Json &json) {
  object(json, {"", "manifest", true});
  Manifest m;
  const Json &target = object(at(json, keys::target), keys::target);
  m.cpu = text(at(target, keys::cpu), keys::cpu);
  for (const Json &feature : array(at(target, keys::features), keys::features))
    m.features.push_back(text(feature, keys::features));
  parseModel(json, m);
  parseTokens(json, m);
  if (const Json *generation = findValue(json, keys::generation))
    m.generation = parseGeneration(*generation);
  if (const Json *chat = find(json, keys::chat))
    m.chat = parseChat(*chat);
  if (const Json *cost = findValue(json, keys::cost))
    m.cost = parseCost(*cost);
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

/// Whether blocks keep the formats of the checkpoint, rather than being quantized to Mica's own.
static bool preservesBlocks(const Manifest &manifest) {
  return !manifest.blockFormats.empty() && !infoOf(manifest.weights).isInteger;
}

std::string weightsText(const Manifest &manifest) {
  if (!preservesBlocks(manifest))
    return std::string(infoOf(manifest.weights).name);
  std::vector<std::pair<int64_t, std::string>> byCount;
  for (const auto &[name, count] : manifest.blockFormats)
    byCount.emplace_back(-count, name);
  std::sort(byCount.begin(), byCount.end());
  std::string text;
  for (const auto &[count, name] : byCount)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::optional<Precision> otherWeights(const Manifest &manifest) {
  if (!preservesBlocks(manifest) ||
      !manifest.floatTypes.contains(std::string(infoOf(manifest.weights).name)))
    return std::nullopt;
  return manifest.weights;
}

std::string phaseText(std::string_view role) {
  return std::string(role == "prompt" ? "prefill" : role);
}

uint64_t cacheBytesPerToken(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const CacheSpec &cache : manifest.caches)
    bytes += cache.bytesPerToken;
  return bytes;
}

int64_t blocksOfCache(const Manifest &manifest, const CacheSpec &cache, int64_t rows) {
  int64_t positions = manifest.maxSeq;
  // The ring buffer must not overwrite a row's window with later rows that have already been
  // stored: those of the same call, or those that a rewind discards.
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

uint64_t checkpointBytes(const CacheSpec &cache) {
  if (cache.matrix > 0)
    return static_cast<uint64_t>(cache.shape[0] * cache.shape[2] * cache.matrix) * sizeof(float);
  return cache.slots > 0 ? stateBytes(cache) / static_cast<uint64_t>(cache.slots) *
                               static_cast<uint64_t>(cache.window - 1)
                         : 0;
}

uint64_t checkpointBytes(const Manifest &manifest) {
  uint64_t bytes = 0;
  for (const CacheSpec &cache : manifest.caches)
    bytes += checkpointBytes(cache);
  return bytes;
}

int64_t checkpointUnit(const CacheSpec &state) {
  constexpr int64_t ofRows = 32;
  return state.chunk > 0 ? state.chunk : ofRows;
}

uint64_t cacheBytesPerSequence(const Manifest &manifest, const CacheSpec &cache, int64_t rows) {
  int64_t positions = std::min(manifest.maxSeq, positionsOfCache(manifest, cache, rows));
  return stateBytes(cache) + cache.bytesPerToken * static_cast<uint64_t>(positions);
}

uint64_t cacheBytesPerSequence(const Manifest &manifest, int64_t rows) {
  uint64_t bytes = 0;
  for (const CacheSpec &cache : manifest.caches)
    bytes += cacheBytesPerSequence(manifest, cache, rows);
  return bytes;
}

uint64_t scratchBytes(const Manifest &manifest, int64_t rows, int64_t withLogits) {
  return manifest.scratchBytesFixed + static_cast<uint64_t>(rows) * manifest.scratchBytesPerRow +
         static_cast<uint64_t>(withLogits) * manifest.scratchBytesPerOutput;
}

uint64_t bytesOfCall(const Manifest &manifest, int64_t rows, int64_t withLogits) {
  return scratchBytes(manifest, rows, withLogits) +
         static_cast<uint64_t>(withLogits) * static_cast<uint64_t>(manifest.vocab) * sizeof(float);
}

int64_t prefillChunkSize(std::optional<int64_t> asked, const Manifest &manifest, bool allLogits) {
  if (asked)
    return *asked;
  constexpr int64_t min = 16;
  int64_t rows = kMaxPromptRows;
  while (rows > min && bytesOfCall(manifest, rows, allLogits ? rows : 0) > kMaxStepBytes)
    rows /= 2;
  return rows;
}

} // namespace mica::rt
