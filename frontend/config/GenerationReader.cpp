#include "frontend/config/GenerationReader.h"

#include "frontend/families/Family.h"
#include "frontend/support/InputError.h"

#include "llvm/ADT/STLExtras.h"

namespace mica {
namespace {

/// Other settings of transformers, vLLM and llama.cpp.
struct UnsupportedSetting {
  llvm::StringLiteral name;
  std::optional<double> neutral = {}; ///< the number that has no effect
  llvm::StringLiteral option = "";    ///< of programs, with the same meaning
};

constexpr UnsupportedSetting unsupportedSettings[] = {
    {"bad_words_ids"},
    {"begin_suppress_tokens"},
    {"diversity_penalty", 0},
    {"dola_layers"},
    {"encoder_no_repeat_ngram_size", 0},
    {"encoder_repetition_penalty", 1},
    {"epsilon_cutoff", 0},
    {"eta_cutoff", 0},
    {"exponential_decay_length_penalty"},
    {"force_words_ids"},
    {"forced_bos_token_id"},
    {"forced_eos_token_id"},
    {"frequency_penalty", 0, "--frequency-penalty"},
    {"guidance_scale", 1},
    {"logit_bias", {}, "--logit-bias"},
    {"min_length", 0},
    {"min_new_tokens", 0},
    {"mirostat", 0, "--mirostat"},
    {"no_repeat_ngram_size", 0},
    {"num_beams", 1},
    {"penalty_alpha", 0},
    {"penalty_last_n", -1},
    {"presence_penalty", 0, "--presence-penalty"},
    {"sequence"},
    {"sequence_bias"},
    {"stop_strings", {}, "--stop"},
    {"suppress_tokens"},
    {"top_h"},
    {"watermarking_config"},
    {"xtc_probability", 0, "--xtc-probability"},
};

constexpr llvm::StringLiteral lengthReason = "programs limit the number of tokens with -n N";

/// Keys of generation_config.json that are not sampling settings.
constexpr IgnoredKeyRow otherKeys[] = {
    {"_from_model_config", reasons::bookkeeping},
    {"cache_implementation", reasons::implementation},
    {"max_length", lengthReason},
    {"max_new_tokens", lengthReason},
    {"pad_token_id", "batches are not padded"},
    {"transformers_version", reasons::bookkeeping},
    {"use_cache", "the cache is always used"},
};

/// Why `key` has no influence on sampling.
llvm::StringRef reasonOf(llvm::StringRef key) {
  for (const IgnoredKeyRow &row : otherKeys)
    if (row.name == key)
      return row.reason;
  return "not a supported sampling setting";
}

/// Whether a value of `choice` has no effect.
bool isNeutral(const UnsupportedSetting &choice, const llvm::json::Value &value) {
  if (auto number = value.getAsNumber())
    return choice.neutral && *number == *choice.neutral;
  if (auto flag = value.getAsBoolean())
    return !*flag;
  const llvm::json::Array *list = value.getAsArray();
  const llvm::json::Object *object = value.getAsObject();
  return (list && list->empty()) || (object && object->empty());
}

/// The reason for ignoring `key`, which does not set a default of programs.
IgnoredKey ignoredKey(const KeySource &source, llvm::StringRef key) {
  const llvm::json::Value &value = *source.find(key);
  std::string path = source.path().str(), name = source.named(key);
  const auto *choice = llvm::find_if(
      unsupportedSettings, [&](const UnsupportedSetting &other) { return other.name == key; });
  if (choice == std::end(unsupportedSettings) || isNeutral(*choice, value))
    return {path, name, reasonOf(key).str(), false};
  std::string reason = "changes which tokens are chosen, but is not supported";
  if (!choice->option.empty())
    reason = "changes which tokens are chosen, but is only supported as " + choice->option.str();
  return {path, name, std::move(reason), true};
}

template <typename T> constexpr Range rangeOf(const SettingRange<T> &range) {
  return {static_cast<double>(range.min), static_cast<double>(range.max)};
}

template <typename Slot, typename T> llvm::Error readInto(Slot &slot, llvm::Expected<T> value) {
  if (!value)
    return value.takeError();
  slot = std::move(*value);
  return llvm::Error::success();
}

llvm::Error readKey(const KeySource &source, llvm::StringRef key, GenerationDefaults &defaults,
                    std::vector<IgnoredKey> &ignored) {
  const llvm::json::Value &value = *source.find(key);
  llvm::StringRef path = source.path();
  std::string name = source.named(key);
  for (const SamplingSetting<double> &setting : kSamplingNumbers)
    if (key == llvm::StringRef(setting.name))
      return readInto(defaults.*setting.slot,
                      readNumber(path, name, value, rangeOf(setting.range)));
  if (key == llvm::StringRef(kSamplingTopK.name))
    return readInto(defaults.topK, readInteger(path, name, value, rangeOf(kSamplingTopK.range)));
  if (key == "bos_token_id")
    return readInto(defaults.bos, readInteger(path, name, value, ranges::token));
  if (key == "eos_token_id")
    return readInto(defaults.eos, readIntegers(path, name, value, ranges::token));
  if (key != llvm::StringRef(kDoSample)) {
    ignored.push_back(ignoredKey(source, key));
    return llvm::Error::success();
  }
  auto flag = value.getAsBoolean();
  if (!flag)
    return source.wrongValue(key, "true or false");
  defaults.doSample = flag;
  return llvm::Error::success();
}

/// The defaults of transformers for a file that only enables sampling.
constexpr double defaultTemperature = 1, defaultTopP = 1;
constexpr int64_t defaultTopK = 50;

/// Applies the defaults of transformers: numbers alone do not enable sampling, and missing numbers
/// have their defaults there. A file without either leaves the choice to the program.
void complete(GenerationDefaults &g, llvm::StringRef path, std::vector<IgnoredKey> &ignored) {
  if (!g.doSample) {
    std::string_view first;
    for (const SamplingSetting<double> &setting : kSamplingNumbers)
      if (setting.slot != &SamplingDefaults::repetitionPenalty && g.*setting.slot && first.empty())
        first = setting.name;
    if (g.topK && first.empty())
      first = kSamplingTopK.name;
    if (first.empty())
      return;
    g.doSample = false;
    ignored.push_back({path.str(), std::string(first),
                       "has no effect without \"do_sample\": true; like transformers, the program "
                       "then takes the most likely token",
                       true});
  }
  if (!*g.doSample)
    return;
  g.temperature = g.temperature.value_or(defaultTemperature);
  g.topP = g.topP.value_or(defaultTopP);
  g.topK = g.topK.value_or(defaultTopK);
}

} // namespace

llvm::Error readGeneration(const KeySource &source, GenerationDefaults &defaults,
                           std::vector<IgnoredKey> &ignored) {
  for (llvm::StringRef key : source.keys())
    if (source.find(key)->kind() != llvm::json::Value::Null)
      if (llvm::Error error = readKey(source, key, defaults, ignored))
        return error;
  complete(defaults, source.path(), ignored);
  return llvm::Error::success();
}

} // namespace mica
