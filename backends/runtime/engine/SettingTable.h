// The settings of samplers that are one number each: a row per setting, from which parsing of
// requests, ranges, defaults, descriptions and the hash of a batch follow.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_SETTINGTABLE_H
#define MICA_BACKENDS_RUNTIME_ENGINE_SETTINGTABLE_H

#include "backends/runtime/engine/GenerationSettings.h"

#include <optional>
#include <string_view>
#include <tuple>

namespace mica::rt {

template <typename T> struct Setting {
  std::string_view name; ///< As in requests; the option has dashes instead of underscores.
  std::optional<T> GenerationSettings::*own;
  T SamplingOptions::*option;
  SettingRange<T> range;
  std::optional<SettingRange<T>> inRequests = {}; ///< Absent: requests do not have it.
  /// The sampling method that it is a part of. The first setting of a method is 0 if it is off.
  std::string_view method = {};
  /// What the model recommends, for settings that models recommend.
  std::optional<T> SamplingDefaults::*recommended = nullptr;
  std::optional<T> off = {}; ///< The value with which it changes nothing, if there is one.
};

namespace setting_table {
using Number = Setting<double>;
using Count = Setting<int64_t>;

namespace range = setting_range;
using S = GenerationSettings;
using O = SamplingOptions;
using D = SamplingDefaults;

/// OpenAI's limits.
inline constexpr SettingRange<double> requestTemperature{0, 2}, requestPenalty{-2, 2};

/// In the order in which they are shown.
inline constexpr std::tuple rows{
    Number{"temperature", &S::temperature, &O::temperature, range::temperature, requestTemperature,
           "", &D::temperature},
    Count{"top_k", &S::topK, &O::topK, range::topK, range::topK, "", &D::topK, 0},
    Number{"top_p", &S::topP, &O::topP, range::topP, range::topP, "", &D::topP, 1},
    Number{"min_p", &S::minP, &O::minP, range::minP, range::minP, "", &D::minP, 0},
    Number{"typical_p", &S::typicalP, &O::typicalP, range::typicalP, {}, "", &D::typicalP, 1},
    Number{"repetition_penalty", &S::repetitionPenalty, &O::repetitionPenalty,
           range::repetitionPenalty, range::repetitionPenalty, "", &D::repetitionPenalty, 1},
    Number{"presence_penalty", &S::presencePenalty, &O::presencePenalty, range::presencePenalty,
           requestPenalty},
    Number{"frequency_penalty", &S::frequencyPenalty, &O::frequencyPenalty, range::frequencyPenalty,
           requestPenalty},
    Number{"dry_multiplier", &S::dryMultiplier, &O::dryMultiplier, range::dryMultiplier, {}, "dry"},
    Number{"dry_base", &S::dryBase, &O::dryBase, range::dryBase, {}, "dry"},
    Count{"dry_allowed_length",
          &S::dryAllowedLength,
          &O::dryAllowedLength,
          range::dryAllowedLength,
          {},
          "dry"},
    Count{"dry_penalty_last_n",
          &S::dryPenaltyLastN,
          &O::dryPenaltyLastN,
          range::dryPenaltyLastN,
          {},
          "dry"},
    Number{"xtc_probability",
           &S::xtcProbability,
           &O::xtcProbability,
           range::xtcProbability,
           {},
           "xtc"},
    Number{"xtc_threshold", &S::xtcThreshold, &O::xtcThreshold, range::xtcThreshold, {}, "xtc"},
    Count{"mirostat", &S::mirostat, &O::mirostat, range::mirostat, {}, "mirostat"},
    Number{"mirostat_ent", &S::mirostatTau, &O::mirostatTau, range::mirostatTau, {}, "mirostat"},
    Number{"mirostat_lr", &S::mirostatEta, &O::mirostatEta, range::mirostatEta, {}, "mirostat"},
};
} // namespace setting_table

inline constexpr auto kSettings = setting_table::rows;

template <typename Visit> void forEachSetting(Visit visit) {
  std::apply([&](const auto &...setting) { (visit(setting), ...); }, kSettings);
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_SETTINGTABLE_H
