//===- SamplingDefaults.h - sampling settings of a model --------*- C++ -*-===//
//
// The sampling settings that a model recommends, by the names of generation_config.json, which
// `mica.model` and manifests use too, and their ranges, which hold for settings of users as well.
//
// Free of LLVM and MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef MICA_IR_ENTRY_SAMPLINGDEFAULTS_H
#define MICA_IR_ENTRY_SAMPLINGDEFAULTS_H

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace mica {

/// An absent setting is left to the program.
struct SamplingDefaults {
  std::optional<double> temperature, topP, minP, typicalP, repetitionPenalty;
  std::optional<int64_t> topK;
  std::optional<bool> doSample; ///< false: the most likely token
};

/// The range of a setting, inclusive.
template <typename T> struct SettingRange {
  T min, max;
  constexpr bool contains(T value) const { return value >= min && value <= max; }
};

namespace setting_range {
inline constexpr int64_t maxCount = std::numeric_limits<int32_t>::max();
inline constexpr SettingRange<double> temperature{0, 1e6}, topP{0, 1}, minP{0, 1},
    typicalP{1e-9, 1}, repetitionPenalty{1e-6, 1e6};
inline constexpr SettingRange<int64_t> topK{0, maxCount};
} // namespace setting_range

template <typename T> struct SamplingSetting {
  std::string_view name;
  std::optional<T> SamplingDefaults::*slot;
  SettingRange<T> range;
};

inline constexpr std::array<SamplingSetting<double>, 5> kSamplingNumbers{{
    {"temperature", &SamplingDefaults::temperature, setting_range::temperature},
    {"top_p", &SamplingDefaults::topP, setting_range::topP},
    {"min_p", &SamplingDefaults::minP, setting_range::minP},
    {"typical_p", &SamplingDefaults::typicalP, setting_range::typicalP},
    {"repetition_penalty", &SamplingDefaults::repetitionPenalty, setting_range::repetitionPenalty},
}};
inline constexpr SamplingSetting<int64_t> kSamplingTopK{"top_k", &SamplingDefaults::topK,
                                                        setting_range::topK};
inline constexpr std::string_view kDoSample = "do_sample";

} // namespace mica

#endif // MICA_IR_ENTRY_SAMPLINGDEFAULTS_H
