// Parses JSON from users.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_NESTEDJSON_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_NESTEDJSON_H

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace mica::rt {

/// The maximum nesting depth of values: copying and writing them is recursive.
inline constexpr int kMaxNesting = 100;
/// The maximum total number of keys, strings, arrays and objects. An empty one has two bytes in the
/// text, but its value takes many times as much memory.
inline constexpr size_t kMaxParts = size_t(1) << 20;

/// Parses a text, in time proportional to its size apart from sorting the keys of each object. The
/// value is discarded if there is an error; `problem` then describes it. Errors are also a key that
/// occurs twice in an object, and texts beyond the limits above. If `stop` is requested, the value
/// is discarded without a problem.
nlohmann::ordered_json parseNested(std::string_view text, std::string &problem,
                                   const std::stop_token &stop = {});

/// An upper estimate of the memory that parseNested takes for `text`, with its result.
uint64_t maxParsedBytes(std::string_view text);

/// A value as a whole number from 0 to 2^64 - 1, if it is one.
template <typename Json> std::optional<uint64_t> unsignedNumber(const Json &value) {
  return value.is_number_unsigned() ? std::optional(value.template get<uint64_t>()) : std::nullopt;
}

/// A value as a whole number from `min` to `max`, if it is one.
template <typename Json>
std::optional<int64_t> wholeNumberWithin(const Json &value, int64_t min, int64_t max) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.template get<uint64_t>() > INT64_MAX))
    return std::nullopt;
  auto number = value.template get<int64_t>();
  return number >= min && number <= max ? std::optional(number) : std::nullopt;
}

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_NESTEDJSON_H
