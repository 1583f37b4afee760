#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/engine/SettingTable.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string_view>
#include <sys/random.h>

namespace mica::rt {

namespace {
namespace range = setting_range;

std::string textOf(double value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}
std::string textOf(int64_t value) { return std::to_string(value); }

template <typename T>
Status checkRange(std::string_view name, const std::optional<T> &value,
                  const SettingRange<T> &range) {
  if (!value || range.contains(*value))
    return {};
  return Error{std::string(name) + " is " + textOf(*value) + "; choose a value from " +
               textOf(range.min) + " to " + textOf(range.max)};
}

Status checkRanges(const GenerationSettings &settings) {
  Status checked;
  forEachSetting([&](const auto &setting) {
    if (checked)
      checked = checkRange(setting.name, settings.*setting.own, setting.range);
  });
  if (checked)
    checked = checkRange("max_tokens", settings.maxTokens, range::maxTokens);
  if (checked)
    checked = checkRange("--lookup", settings.lookup, range::lookup);
  if (checked)
    checked = checkRange("--mtp", settings.mtp, range::mtp);
  return checked;
}
} // namespace

GenerationSettings GenerationSettings::orElse(const GenerationSettings &base) const {
  GenerationSettings all = *this;
  auto fill = [](auto &own, const auto &other) {
    if (!own)
      own = other;
  };
  forEachSetting([&](const auto &setting) { fill(all.*setting.own, base.*setting.own); });
  fill(all.dryBreakers, base.dryBreakers);
  fill(all.seed, base.seed);
  fill(all.maxTokens, base.maxTokens);
  fill(all.lookup, base.lookup);
  fill(all.mtp, base.mtp);
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

Status checkSettings(const GenerationSettings &settings, const Manifest &manifest) {
  if (Status checked = checkRanges(settings); !checked)
    return checked;
  for (LogitBias bias : settings.logitBias)
    if (bias.token < 0 || bias.token >= manifest.vocab)
      return Error{"logit bias: token " + std::to_string(bias.token) +
                   " is not in the model's vocabulary (0 to " + std::to_string(manifest.vocab - 1) +
                   "); use another"};
    else if (!(bias.bias < std::numeric_limits<float>::infinity()))
      return Error{"the bias of token " + std::to_string(bias.token) +
                   " is not a number below infinity; use another"};
  if (std::count(settings.stops.begin(), settings.stops.end(), "") > 0)
    return Error{"a stop string is empty; leave it out"};
  if (settings.mtp.value_or(0) > 0 && !manifest.canDraft())
    return Error{
        "--mtp: the program has no multi-token prediction head; leave it out, or compile a "
        "model that has one with --keep-mtp"};
  for (auto [name, drafts] : {std::pair("--lookup", settings.lookup), {"--mtp", settings.mtp}})
    if (drafts.value_or(0) > 0 && manifest.batchInvariantRows < 2)
      return Error{std::string(name) +
                   ": the program computes one row at a time; leave it out or compile again"};
  return {};
}

SamplingOptions samplingOptions(const GenerationSettings &settings, const Manifest &manifest) {
  const SamplingDefaults &model = manifest.generation;
  SamplingOptions options;
  forEachSetting([&](const auto &setting) {
    auto &option = options.*setting.option;
    if (setting.recommended)
      option = (model.*setting.recommended).value_or(option);
    option = (settings.*setting.own).value_or(option);
  });
  if (!settings.temperature && !model.doSample.value_or(true))
    options.temperature = 0;
  options.logitBias = settings.logitBias;
  options.dryBreakers = settings.dryBreakerTokens;
  options.seed = settings.seed ? *settings.seed : drawSeed();
  return options;
}

uint64_t drawSeed() {
  uint64_t drawn = 0;
  // Without random bytes (a very old kernel), every run has the same seed; this is not an error.
  if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn)
    drawn = 0;
  return drawn;
}

std::vector<SamplingValue> describeSampling(const SamplingOptions &options) {
  std::vector<SamplingValue> values;
  forEachSetting([&](const auto &setting) {
    if (setting.recommended)
      values.push_back(
          {std::string(setting.name), static_cast<double>(options.*setting.option), setting.off});
  });
  return values;
}

std::vector<std::pair<std::string, std::string>>
describeSettings(const GenerationSettings &settings, const Manifest &manifest) {
  std::vector<std::pair<std::string, std::string>> all;
  SamplingOptions options = samplingOptions(settings, manifest);
  forEachSetting([&](const auto &setting) {
    std::string name(setting.name);
    std::replace(name.begin(), name.end(), '_', '-');
    all.emplace_back(std::move(name), textOf(options.*setting.option));
  });
  std::vector<std::string> breakers =
      settings.dryBreakers.value_or(GenerationSettings::defaultDryBreakers());
  if (breakers.empty())
    breakers = {"none"};
  for (const std::string &text : breakers)
    all.emplace_back("dry-sequence-breaker", printable(text));
  all.emplace_back("seed", settings.seed ? std::to_string(*settings.seed) : "random");
  all.emplace_back("n", textOf(settings.maxTokens.value_or(GenerationSettings::defaultMaxTokens)));
  all.emplace_back("lookup", textOf(settings.lookup.value_or(0)));
  if (manifest.canDraft())
    all.emplace_back("mtp", textOf(settings.mtp.value_or(0)));
  for (const std::string &stop : settings.stops)
    all.emplace_back("stop", printable(stop));
  for (LogitBias bias : settings.logitBias)
    all.emplace_back("logit-bias", std::to_string(bias.token) + "=" + textOf(double(bias.bias)));
  return all;
}

} // namespace mica::rt
