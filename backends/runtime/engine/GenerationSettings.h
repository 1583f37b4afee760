// Generation settings of command lines and requests, and their ranges.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_GENERATIONSETTINGS_H
#define MICA_BACKENDS_RUNTIME_ENGINE_GENERATIONSETTINGS_H

#include "backends/runtime/abi/Manifest.h"
#include "backends/runtime/abi/Tokens.h"
#include "backends/runtime/engine/Sampler.h"
#include "ir/Entry/SamplingDefaults.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::rt {

/// An absent setting has the model's own value (from its manifest), else a default.
struct GenerationSettings {
  /// See SamplingOptions.
  std::optional<double> temperature, topP, minP, typicalP;
  std::optional<double> repetitionPenalty, presencePenalty, frequencyPenalty;
  std::optional<double> dryMultiplier, dryBase, xtcProbability, xtcThreshold, mirostatTau,
      mirostatEta;
  std::optional<int64_t> topK, dryAllowedLength, dryPenaltyLastN, mirostat;
  /// Texts across which DRY does not extend repetitions; absent: defaultDryBreakers. The engine
  /// uses `dryBreakerTokens`, the token sequences of these texts.
  std::optional<std::vector<std::string>> dryBreakers;
  std::vector<Tokens> dryBreakerTokens;
  std::vector<LogitBias> logitBias;
  std::optional<uint64_t> seed;     ///< Absent: a random one.
  std::optional<int64_t> maxTokens; ///< New tokens; absent: defaultMaxTokens.
  /// The maximum number of tokens drafted from the text so far and verified in one call of the
  /// model; absent or 0: none. Does not change the output.
  std::optional<int64_t> lookup;
  /// The same for tokens drafted by the model's multi-token prediction head.
  std::optional<int64_t> mtp;
  Tokens endTokens; ///< Tokens that end a text besides those of the manifest.
  bool ignoreEos = false;
  /// A text ends before the first of these strings. Applied by listeners (TextStream), because the
  /// engine works on tokens.
  std::vector<std::string> stops;

  static constexpr int64_t defaultMaxTokens = 256;
  static std::vector<std::string> defaultDryBreakers() { return {"\n", ":", "\"", "*"}; }

  /// These settings; absent ones are taken from `base`.
  GenerationSettings orElse(const GenerationSettings &base) const;
};

/// The ranges of all settings, used by parsers and checkSettings: those that a model may recommend,
/// and others.
namespace setting_range {
using namespace mica::setting_range;
inline constexpr SettingRange<double> presencePenalty{-1e4, 1e4}, frequencyPenalty{-1e4, 1e4},
    dryMultiplier{0, 1e4}, dryBase{1, 1e4}, xtcProbability{0, 1}, xtcThreshold{0, 1},
    mirostatTau{0, 100}, mirostatEta{0, 100};
/// With drafts, a pass of a sequence has at most the rows that all programs compute with the
/// arithmetic of one row (Manifest::batchInvariantRows).
inline constexpr SettingRange<int64_t> lookup{0, 31}, mtp{0, 31};
inline constexpr SettingRange<int64_t> maxTokens{0, maxCount}, dryAllowedLength{0, maxCount},
    dryPenaltyLastN{-1, maxCount}, mirostat{0, 2};
} // namespace setting_range

/// Errors: a value out of range, a bias for a token that the model does not have, drafts for a
/// program that computes one row at a time, or of a head that it does not have.
Status checkSettings(const GenerationSettings &settings, const Manifest &manifest);

/// The options of a sampler. Absent settings are the model's own, else
/// temperature 0.8 and top-p 0.95; `do_sample: false` means greedy. An absent seed is random.
SamplingOptions samplingOptions(const GenerationSettings &settings, const Manifest &manifest);

/// A random seed.
uint64_t drawSeed();

/// An option that a model may recommend.
struct SamplingValue {
  std::string name;
  double value;
  std::optional<double> off; ///< The value with which it changes nothing, if there is one.
};
std::vector<SamplingValue> describeSampling(const SamplingOptions &options);

/// The effective values of all settings as text, by the names of their options without dashes, for
/// a generation with `settings`.
std::vector<std::pair<std::string, std::string>>
describeSettings(const GenerationSettings &settings, const Manifest &manifest);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_GENERATIONSETTINGS_H
