#include "backends/runtime/engine/GenerationSettings.h"

#include <algorithm>
#include <charconv>
#include <sys/random.h>

namespace mica::rt {

GenerationSettings GenerationSettings::orElse(const GenerationSettings &base) const {
  GenerationSettings all = *this;
  auto fill = [](auto &own, const auto &other) {
    if (!own)
      own = other;
  };
  fill(all.temperature, base.temperature);
  fill(all.topP, base.topP);
  fill(all.minP, base.minP);
  fill(all.typicalP, base.typicalP);
  fill(all.repetitionPenalty, base.repetitionPenalty);
  fill(all.presencePenalty, base.presencePenalty);
  fill(all.frequencyPenalty, base.frequencyPenalty);
  fill(all.dryMultiplier, base.dryMultiplier);
  fill(all.dryBase, base.dryBase);
  fill(all.dryAllowedLength, base.dryAllowedLength);
  fill(all.dryPenaltyLastN, base.dryPenaltyLastN);
  fill(all.dryBreakers, base.dryBreakers);
  fill(all.xtcProbability, base.xtcProbability);
  fill(all.xtcThreshold, base.xtcThreshold);
  fill(all.mirostat, base.mirostat);
  fill(all.mirostatTau, base.mirostatTau);
  fill(all.mirostatEta, base.mirostatEta);
  fill(all.topK, base.topK);
  fill(all.seed, base.seed);
  fill(all.maxTokens, base.maxTokens);
  fill(all.lookup, base.lookup);
  auto fillList = [](auto &own, const auto &other) {
    if (own.empty())
      own = other;
  };
  fillList(all.logitBias, base.logitBias);
  fillList(all.dryBreakerTokens, base.dryBreakerTokens);
  fillList(all.endTokens, base.endTokens);
  fillList(all.stops, base.stops);
  all.ignoreEos |= base.ignoreEos;
  return all;
}

namespace {
std::string textOf(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}
std::string textOf(int64_t value) { return std::to_string(value); }

template <typename T>
Status checkRange(const char *name, const std::optional<T> &value, const SettingRange<T> &range) {
  if (!value || range.contains(*value))
    return {};
  return Error{std::string(name) + " is " + textOf(*value) + "; choose a value from " +
               textOf(range.min) + " to " + textOf(range.max)};
}

Status checkRanges(const GenerationSettings &settings) {
  namespace range = setting_range;
  for (const Status &checked :
       {checkRange("temperature", settings.temperature, range::temperature),
        checkRange("top_p", settings.topP, range::topP),
        checkRange("min_p", settings.minP, range::minP),
        checkRange("typical_p", settings.typicalP, range::typicalP),
        checkRange("repetition_penalty", settings.repetitionPenalty, range::repetitionPenalty),
        checkRange("presence_penalty", settings.presencePenalty, range::presencePenalty),
        checkRange("frequency_penalty", settings.frequencyPenalty, range::frequencyPenalty),
        checkRange("dry_multiplier", settings.dryMultiplier, range::dryMultiplier),
        checkRange("dry_base", settings.dryBase, range::dryBase),
        checkRange("dry_allowed_length", settings.dryAllowedLength, range::dryAllowedLength),
        checkRange("dry_penalty_last_n", settings.dryPenaltyLastN, range::dryPenaltyLastN),
        checkRange("xtc_probability", settings.xtcProbability, range::xtcProbability),
        checkRange("xtc_threshold", settings.xtcThreshold, range::xtcThreshold),
        checkRange("mirostat", settings.mirostat, range::mirostat),
        checkRange("mirostat_ent", settings.mirostatTau, range::mirostatTau),
        checkRange("mirostat_lr", settings.mirostatEta, range::mirostatEta),
        checkRange("top_k", settings.topK, range::topK),
        checkRange("max_tokens", settings.maxTokens, range::maxTokens),
        checkRange("lookup", settings.lookup, range::lookup)})
    if (!checked)
      return checked;
  return {};
}
} // namespace

Status checkSettings(const GenerationSettings &settings, const Manifest &manifest) {
  if (Status checked = checkRanges(settings); !checked)
    return checked;
  for (LogitBias bias : settings.logitBias)
    if (bias.token < 0 || bias.token >= manifest.vocab)
      return Error{"--logit-bias: token " + std::to_string(bias.token) +
                   " is not in the model's vocabulary (0 to " + std::to_string(manifest.vocab - 1) +
                   "); use another"};
    else if (!(bias.bias < std::numeric_limits<float>::infinity()))
      return Error{"the bias of token " + std::to_string(bias.token) +
                   " is not a number below infinity; use another"};
  if (std::count(settings.stops.begin(), settings.stops.end(), "") > 0)
    return Error{"a stop string is empty; leave it out"};
  if (settings.lookup.value_or(0) > 0 && manifest.batchInvariantRows < 2)
    return Error{"the program computes one row at a time; leave out --lookup or compile it again"};
  return {};
}

SamplingOptions samplingOptions(const GenerationSettings &settings, const Manifest &manifest) {
  const Manifest::Generation &g = manifest.generation;
  SamplingOptions options;
  double temperature = g.doSample.value_or(true) ? g.temperature.value_or(options.temperature) : 0;
  options.temperature = settings.temperature.value_or(temperature);
  options.topK = settings.topK.value_or(g.topK.value_or(options.topK));
  options.topP = settings.topP.value_or(g.topP.value_or(options.topP));
  options.minP = settings.minP.value_or(g.minP.value_or(options.minP));
  options.typicalP = settings.typicalP.value_or(g.typicalP.value_or(options.typicalP));
  options.presencePenalty = settings.presencePenalty.value_or(options.presencePenalty);
  options.frequencyPenalty = settings.frequencyPenalty.value_or(options.frequencyPenalty);
  options.logitBias = settings.logitBias;
  options.dryMultiplier = settings.dryMultiplier.value_or(options.dryMultiplier);
  options.dryBase = settings.dryBase.value_or(options.dryBase);
  options.dryAllowedLength = settings.dryAllowedLength.value_or(options.dryAllowedLength);
  options.dryPenaltyLastN = settings.dryPenaltyLastN.value_or(options.dryPenaltyLastN);
  options.dryBreakers = settings.dryBreakerTokens;
  options.xtcProbability = settings.xtcProbability.value_or(options.xtcProbability);
  options.xtcThreshold = settings.xtcThreshold.value_or(options.xtcThreshold);
  options.mirostat = settings.mirostat.value_or(options.mirostat);
  options.mirostatTau = settings.mirostatTau.value_or(options.mirostatTau);
  options.mirostatEta = settings.mirostatEta.value_or(options.mirostatEta);
  options.repetitionPenalty =
      settings.repetitionPenalty.value_or(g.repetitionPenalty.value_or(options.repetitionPenalty));
  options.seed = settings.seed ? *settings.seed : drawSeed();
  return options;
}

uint64_t drawSeed() {
  uint64_t drawn = 0;
  // Without random bytes (an ancient kernel) every run draws the same numbers, which is no error.
  if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
    drawn = 0;
  return drawn;
}

std::vector<std::pair<std::string, double>> describeSampling(const SamplingOptions &options) {
  return {{"temperature", options.temperature},
          {"top_k", static_cast<double>(options.topK)},
          {"top_p", options.topP},
          {"min_p", options.minP},
          {"typical_p", options.typicalP},
          {"repetition_penalty", options.repetitionPenalty}};
}

std::vector<std::pair<std::string, std::string>>
describeSettings(const GenerationSettings &settings, const Manifest &manifest) {
  std::vector<std::pair<std::string, std::string>> all;
  SamplingOptions options = samplingOptions(settings, manifest);
  for (const auto &[name, value] : describeSampling(options)) {
    std::string option = name;
    std::replace(option.begin(), option.end(), '_', '-');
    all.emplace_back(option, textOf(value));
  }
  all.emplace_back("presence-penalty", textOf(options.presencePenalty));
  all.emplace_back("frequency-penalty", textOf(options.frequencyPenalty));
  all.emplace_back("dry-multiplier", textOf(options.dryMultiplier));
  all.emplace_back("xtc-probability", textOf(options.xtcProbability));
  all.emplace_back("mirostat", textOf(options.mirostat));
  all.emplace_back("seed", settings.seed ? std::to_string(*settings.seed) : "random");
  all.emplace_back("n", textOf(settings.maxTokens.value_or(GenerationSettings::defaultMaxTokens)));
  all.emplace_back("lookup", textOf(settings.lookup.value_or(0)));
  for (const std::string &stop : settings.stops)
    all.emplace_back("stop", stop);
  for (LogitBias bias : settings.logitBias)
    all.emplace_back("logit-bias", std::to_string(bias.token) + "=" + textOf(double(bias.bias)));
  return all;
}

} // namespace mica::rt
