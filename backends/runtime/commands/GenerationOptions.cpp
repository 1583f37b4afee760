#include "backends/runtime/commands/GenerationOptions.h"
#include "backends/runtime/support/CommandLine.h"
#include "backends/runtime/support/HelpFormatter.h"
#include "backends/runtime/support/OptionValues.h"
#include "backends/runtime/support/Spelling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace mica::rt {

CLI::Validator within(const SettingRange<double> &range) {
  return numberBetween(range.min, range.max);
}
CLI::Validator within(const SettingRange<int64_t> &range) {
  return wholeNumber(static_cast<uint64_t>(range.min), static_cast<uint64_t>(range.max));
}

namespace {
void addPenalties(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--repetition-penalty,--repeat-penalty", settings.repetitionPenalty,
                 "Penalize tokens that are already in the text; 1: off")
      ->check(within(setting_range::repetitionPenalty));
  app.add_option("--presence-penalty", settings.presencePenalty,
                 "Subtract X from the logits of tokens that were generated before; 0: off")
      ->check(within(setting_range::presencePenalty));
  app.add_option("--frequency-penalty", settings.frequencyPenalty,
                 "Subtract X from the logit of a token for each time it was generated; 0: off")
      ->check(within(setting_range::frequencyPenalty));
  repeatable(app.add_option_function<std::vector<std::string>>(
                 "--logit-bias",
                 [&settings](const std::vector<std::string> &words) {
                   for (const std::string &word : words) {
                     Result<LogitBias> bias = parseLogitBias(word);
                     if (!bias)
                       throw CLI::ValidationError("--logit-bias", bias.error().message);
                     settings.logitBias.push_back(*bias);
                   }
                 },
                 "Add B to the logit of token ID; -inf bans it; may repeat"))
      ->type_name("ID=B");
}

void addDry(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--dry-multiplier", settings.dryMultiplier,
                 "DRY strength: a token that would extend a repetition of n tokens is penalized by "
                 "X * base ^ (n - allowed length); 0: off")
      ->check(within(setting_range::dryMultiplier));
  app.add_option("--dry-base", settings.dryBase, "DRY base (default: 1.75)")
      ->check(within(setting_range::dryBase));
  app.add_option("--dry-allowed-length", settings.dryAllowedLength,
                 "DRY ignores repetitions of fewer tokens (default: 2)")
      ->transform(within(setting_range::dryAllowedLength));
  app.add_option("--dry-penalty-last-n", settings.dryPenaltyLastN,
                 "DRY scans the last N tokens for repetitions; -1: all of them (default); 0: off")
      // The only negative number of a range: wholeNumber knows none.
      ->transform(CLI::Validator(
          [](std::string &text) {
            return text == "-1" ? std::string()
                                : wholeNumber(0, setting_range::dryPenaltyLastN.max)(text);
          },
          ""));
  repeatable(
      app.add_option_function<std::vector<std::string>>(
          "--dry-sequence-breaker",
          [&settings](std::vector<std::string> texts) {
            std::erase(texts, "none");
            settings.dryBreakers = std::move(texts);
          },
          "DRY does not extend repetitions across TEXT; may repeat; none: no breakers (default: "
          "newline, colon, quotation mark, asterisk)"))
      ->type_name("TEXT");
}

void addMirostat(CLI::App &app, GenerationSettings &settings) {
  app.add_option(
         "--mirostat", settings.mirostat,
         "Use Mirostat 1 or 2 instead of top-k, top-p, min-p, typical and XTC sampling; 0: off")
      ->transform(within(setting_range::mirostat));
  app.add_option("--mirostat-ent", settings.mirostatTau,
                 "Mirostat target entropy in bits (default: 5)")
      ->check(within(setting_range::mirostatTau));
  app.add_option("--mirostat-lr", settings.mirostatEta, "Mirostat learning rate (default: 0.1)")
      ->check(within(setting_range::mirostatEta));
}

void addChoice(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--temperature,--temp", settings.temperature, "Sampling temperature; 0: greedy")
      ->check(within(setting_range::temperature));
  app.add_option("--top-k", settings.topK, "Sample from the N most likely tokens; 0: all")
      ->transform(within(setting_range::topK));
  app.add_option("--top-p", settings.topP,
                 "Sample from the smallest set of tokens with a total probability of X")
      ->check(within(setting_range::topP));
  app.add_option("--min-p", settings.minP,
                 "Drop tokens less likely than X times the most likely one")
      ->check(within(setting_range::minP));
  app.add_option("--typical-p,--typical", settings.typicalP,
                 "Locally typical sampling: keep the tokens closest to the expected surprisal, up "
                 "to a total probability of X")
      ->check(within(setting_range::typicalP));
  app.add_option("--xtc-probability", settings.xtcProbability,
                 "Probability of XTC: it removes all tokens above the threshold except the least "
                 "likely of them; 0: off")
      ->check(within(setting_range::xtcProbability));
  app.add_option("--xtc-threshold", settings.xtcThreshold,
                 "Probability threshold of XTC; above 0.5: off (default: 0.1)")
      ->check(within(setting_range::xtcThreshold));
  addMirostat(app, settings);
  app.add_option("-s,--seed", settings.seed, "Random seed, for reproducible sampling")
      ->transform(wholeNumber(0, std::numeric_limits<uint64_t>::max()));
}
} // namespace

void addSampling(CLI::App &app, GenerationSettings &settings) {
  addGroup(app, "Sampling", [&] { addChoice(app, settings); });
  addGroup(app, "Repetition", [&] {
    addPenalties(app, settings);
    addDry(app, settings);
  });
}

void addDrafts(CLI::App &app, GenerationSettings &settings) {
  app.add_option("--lookup", settings.lookup,
                 "Speculative decoding by prompt lookup: draft up to N tokens (in "
                 "effect fewer with several sequences) from the text so far and verify them in one "
                 "pass; the output stays the same")
      ->type_name("N")
      ->transform(within(setting_range::lookup));
  app.add_option("--mtp", settings.mtp,
                 "Speculative decoding with the model's multi-token prediction (MTP) head, if "
                 "it was compiled with --keep-mtp: draft up to N tokens where prompt "
                 "lookup finds none, and verify them in one pass; the output stays the same")
      ->type_name("N")
      ->transform(within(setting_range::mtp));
}

void addCheckpointBytes(CLI::App &app, std::optional<uint64_t> &bytes) {
  app.add_option("--checkpoint-bytes", bytes,
                 "Memory for checkpoints of recurrent and rolling states, to resume from after "
                 "an edit; 0: none; no effect on other models and with several ranks (default: an "
                 "eighth of the memory available besides the weights)")
      ->transform(wholeNumber(0));
}

void addStops(CLI::App &app, GenerationSettings &settings) {
  repeatable(app.add_option("--stop", settings.stops, "Stop before TEXT; may repeat"))
      ->type_name("TEXT")
      ->check([](const std::string &text) { return std::string(text.empty() ? "is empty" : ""); });
}

Result<LogitBias> parseLogitBias(const std::string &text) {
  size_t equals = text.find('=');
  const char *begin = text.data(), *end = begin + text.size();
  const char *middle = begin + std::min(equals, text.size());
  LogitBias out{};
  auto id = std::from_chars(begin, middle, out.token);
  auto bias = std::from_chars(std::min(middle + 1, end), end, out.bias);
  bool good = id.ec == std::errc() && id.ptr == middle && out.token >= 0 &&
              bias.ec == std::errc() && bias.ptr == end &&
              out.bias < std::numeric_limits<float>::infinity();
  if (!good)
    return Error{"'" + text +
                 "' is not a bias for a token; write ID=B such as 13=-2.5, or 13=-inf to ban it"};
  return out;
}

Status changeSetting(GenerationSettings &settings, std::string name, const std::string &value) {
  GenerationSettings changed = settings;
  CLI::App app;
  app.set_help_flag();
  // As in `chat`, where an answer without tokens is no answer.
  app.add_option("-n,--n-predict", changed.maxTokens)
      ->transform(wholeNumber(1, setting_range::maxTokens.max));
  addSampling(app, changed);
  addStops(app, changed);
  addDrafts(app, changed);
  std::replace(name.begin(), name.end(), '_', '-');
  std::string option = (name.size() == 1 ? "-" : "--") + name;
  if (!app.get_option_no_throw(option)) {
    std::vector<std::string> known;
    for (const CLI::Option *each : app.get_options())
      known.insert(known.end(), each->get_lnames().begin(), each->get_lnames().end());
    return Error{"there is no setting '" + name + "'" + didYouMean(closestWord(name, known))};
  }
  auto parsed = parseWords(app, {option, value});
  if (!parsed)
    return parsed.error();
  settings = std::move(changed);
  return {};
}

} // namespace mica::rt
