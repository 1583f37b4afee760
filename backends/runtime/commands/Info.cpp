#include "backends/runtime/commands/Info.h"
#include "backends/runtime/abi/ManifestKeys.h"
#include "backends/runtime/engine/Model.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/SizeText.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mica::rt {

namespace {
using Json = nlohmann::ordered_json;

Json sectionsOf(const program::ProgramFile &file) {
  Json sections = Json::array();
  for (const program::Section &section : file.layout().sections)
    sections.push_back({{"name", program::sectionName(static_cast<uint32_t>(section.kind))},
                        {"offset", section.offset},
                        {"bytes", section.size}});
  return sections;
}

/// The default sampling settings.
SamplingOptions defaultSampling(const Manifest &m) {
  GenerationSettings none;
  none.seed = 0;
  return samplingOptions(none, m);
}

Json samplingOf(const Manifest &m) {
  Json json;
  for (const SamplingValue &setting : describeSampling(defaultSampling(m)))
    json[setting.name] = setting.value;
  return json;
}

std::string samplingWords(const Manifest &m) {
  SamplingOptions options = defaultSampling(m);
  if (options.temperature == 0 && options.repetitionPenalty == 1)
    return "greedy";
  std::string text;
  for (const SamplingValue &setting : describeSampling(options)) {
    if (setting.value == setting.off)
      continue;
    char number[32];
    std::snprintf(number, sizeof number, "%g", setting.value);
    text += (text.empty() ? "" : ", ") + setting.name + " " + number;
  }
  return text;
}

Json describe(const program::ProgramFile &file, const Manifest &m, const CheckTarget &check) {
  Json manifest = Json::parse(m.json);
  bool tokenizer = file.layout().find(program::SectionKind::Tokenizer) != nullptr;
  Json json = {{"model", m.name}, {"weights", weightsText(m)}};
  if (std::optional<Precision> others = otherWeights(m))
    json["other_weights"] = infoOf(*others).name;
  json.update({{"kv", infoOf(m.kv).name},
               {"ranks", m.ranks},
               {"vocab", m.vocab},
               {"max_seq", m.maxSeq},
               {"tokenizer", tokenizer},
               {"chat_template", m.chat.has_value()},
               {"tool_template", m.chat && m.chat->toolTemplate},
               {"sampling", samplingOf(m)},
               {"target", manifest[manifest_keys::target.text]},
               {"runs_here", bool(check(m.cpu, m.features))},
               {"cache_bytes_per_token", cacheBytesPerToken(m)},
               {"cache_bytes", cacheBytesPerSequence(m, prefillChunkSize(std::nullopt, m))},
               {"state_bytes", stateBytesPerSequence(m)},
               {"checkpoint_bytes", checkpointBytes(m)},
               {"file_bytes", file.layout().fileSize},
               {"sections", sectionsOf(file)},
               {"version", MICA_VERSION},
               {"format", program::formatVersion},
               {"manifest", manifest}});
  return json;
}

/// Describes the layers that cache less than the context.
std::string windowWords(const Manifest &m, int64_t promptRows) {
  std::string text;
  for (const CacheSpec &cache : m.caches) {
    int64_t kept = positionsOfCache(m, cache, promptRows);
    if (cache.window == 0 || cache.slots > 0 || kept >= m.maxSeq)
      continue;
    std::string words = "; layers with a window of " + std::to_string(cache.window) + " cache " +
                        std::to_string(kept);
    if (text.find(words) == text.npos)
      text += words;
  }
  return text;
}

std::string size(uint64_t bytes) { return bytesText(static_cast<double>(bytes)); }

/// What all ranks have.
std::string replicatedWords(const Manifest &m) {
  uint64_t bytes = 0;
  std::string names;
  for (const auto &[name, ofName] : m.replicated) {
    bytes += ofName;
    names += ", " + name;
  }
  return size(bytes) + " on each rank" + names;
}

std::string words(const program::ProgramFile &file, const Manifest &m, const CheckTarget &check) {
  std::string text;
  int64_t promptRows = prefillChunkSize(std::nullopt, m);
  auto line = [&](const char *name, const std::string &value) {
    text += name + std::string(14 - std::char_traits<char>::length(name), ' ') + value + "\n";
  };
  line("model", m.name);
  std::string weights, rows;
  for (const auto *types : {&m.blockFormats, &m.floatTypes})
    for (const auto &[type, count] : *types)
      weights += (weights.empty() ? "" : ", ") + type + " x " + std::to_string(count);
  if (weights.empty())
    weights = infoOf(m.weights).name;
  std::string bits =
      bitsPerWeightText(static_cast<double>(m.ranks > 1 ? m.unshardedBytes : m.weightBytes),
                        static_cast<double>(m.parameters));
  line("weights", weights + (bits.empty() ? "" : ", " + bits));
  if (m.ranks > 1) {
    line("ranks", std::to_string(m.ranks) + ", each with " + size(m.weightBytes) +
                      " of weights; start the program with mpirun -n " + std::to_string(m.ranks));
    line("replicated", replicatedWords(m));
    if (m.paddingBytes > 0)
      line("padding",
           size(m.paddingBytes) + " on each rank, in groups of columns that are not full");
  }
  line("cache", std::string(infoOf(m.kv).name));
  for (const auto &[role, type] : m.rows)
    rows += (rows.empty() ? "" : ", ") + phaseText(role) + " " + type;
  if (!rows.empty())
    line("activations", rows);
  line("vocabulary", std::to_string(m.vocab));
  std::string onRank = m.ranks > 1 ? " on each rank" : "";
  uint64_t states = stateBytesPerSequence(m), perToken = cacheBytesPerToken(m);
  std::string context = std::to_string(m.maxSeq) + " positions";
  if (perToken > 0)
    context += ", " + size(perToken) + " each, " +
               size(cacheBytesPerSequence(m, promptRows) - states) + " for all" + onRank +
               windowWords(m, promptRows);
  line("context", context);
  if (states > 0)
    line("state", size(states) + " per sequence, of any length" + onRank);
  if (uint64_t bytes = checkpointBytes(m))
    line("checkpoint", size(bytes) + " of state each, see --checkpoint-bytes");
  for (int64_t threshold : m.ropeLengthThresholds)
    if (threshold < m.maxSeq)
      line("rope", "frequencies change beyond " + std::to_string(threshold) +
                       " positions; the KV cache is then recomputed");
  bool tokenizer = file.layout().find(program::SectionKind::Tokenizer) != nullptr;
  line("tokenizer", tokenizer ? "yes" : "no; use --tokens");
  bool forTools = m.chat && m.chat->toolTemplate;
  line("chat", forTools ? "yes, with a separate template for tools; see `PROGRAM chat --help`"
               : m.chat ? "yes; see `PROGRAM chat --help`"
               // Programs without a tokenizer have no template, even if the model has one.
               : tokenizer ? "no, the model has no chat template"
                           : "no, the program has no tokenizer");
  line("sampling", samplingWords(m));
  Status able = check(m.cpu, m.features);
  line("target", m.cpu + (able ? ", runs here" : ": " + able.error().message));
  line("file", size(file.layout().fileSize) + ", written by mica " MICA_VERSION);
  for (const program::Section &section : file.layout().sections)
    line(("  " + std::string(program::sectionName(static_cast<uint32_t>(section.kind)))).c_str(),
         size(section.size));
  return text;
}

Status checkSections(const program::ProgramFile &file) {
  bool terminal = isatty(STDERR_FILENO);
  for (const program::Section &section : file.layout().sections) {
    auto progress = [&](uint64_t done) {
      std::fprintf(stderr, "\rchecking %s %3.0f %%",
                   std::string(program::sectionName(static_cast<uint32_t>(section.kind))).c_str(),
                   100.0 * static_cast<double>(done) / static_cast<double>(section.size));
    };
    Status sound = program::verifySection(file.source(), section,
                                          terminal ? progress : std::function<void(uint64_t)>());
    if (terminal)
      std::fprintf(stderr, "\r\x1b[K");
    if (!sound)
      return sound;
  }
  return {};
}
} // namespace

Status infoCommand(const program::ProgramFile &file, const CheckTarget &check,
                   const InfoArguments &arguments) {
  if (arguments.licenses)
    return writeOut(licenseNotices());
  Result<Manifest> manifest = readManifest(file);
  if (!manifest)
    return manifest.error();
  if (arguments.check)
    if (Status sound = checkSections(file); !sound)
      return sound;
  if (arguments.json) {
    Json report = describe(file, *manifest, check);
    if (arguments.check)
      report["check"] = "ok";
    return writeOut(toJsonText(report) + "\n");
  }
  return writeOut(words(file, *manifest, check) +
                  (arguments.check ? "check         all checksums match\n" : ""));
}

} // namespace mica::rt
