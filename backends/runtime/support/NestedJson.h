// Parses JSON from users.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_NESTEDJSON_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_NESTEDJSON_H

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt {

/// The maximum nesting depth of values: copying and writing them is recursive.
inline constexpr int kMaxNesting = 100;

/// The first JSON escape in `text` that is an unpaired surrogate, which UTF-8 cannot represent;
/// empty if there is none.
inline std::string_view loneSurrogate(std::string_view text) {
  auto unitAt = [&](size_t at) {
    uint32_t unit = 0;
    if (at + 6 > text.size() || text.substr(at, 2) != "\\u")
      return unit;
    auto [end, error] = std::from_chars(text.data() + at + 2, text.data() + at + 6, unit, 16);
    return end == text.data() + at + 6 ? unit : 0;
  };
  for (size_t at = text.find('\\'); at != text.npos; at = text.find('\\', at)) {
    uint32_t unit = unitAt(at), next = unitAt(at + 6);
    bool first = unit >= 0xD800 && unit < 0xDC00, second = unit >= 0xDC00 && unit < 0xE000;
    bool whole = first && next >= 0xDC00 && next < 0xE000;
    if ((first && !whole) || second)
      return text.substr(at, 6);
    at = std::min(at + (whole ? 12 : 2), text.size());
  }
  return {};
}

/// Parses a text. The value is discarded if there is an error; `problem` then describes it, unless
/// the text is not JSON at all.
template <typename Json> Json parseNested(std::string_view text, std::string &problem) {
  problem.clear();
  std::vector<std::set<std::string>> keys; // of the enclosing objects
  auto keep = [&](int depth, typename Json::parse_event_t event, Json &value) {
    using Event = typename Json::parse_event_t;
    if (!problem.empty())
      return false;
    if (depth > kMaxNesting)
      problem = "nested more than " + std::to_string(kMaxNesting) + " deep; shorten it";
    else if (event == Event::object_start)
      keys.emplace_back();
    else if (event == Event::object_end)
      keys.pop_back();
    else if (event == Event::key && !keys.back().insert(value.template get<std::string>()).second)
      problem = "the key " + value.dump() + " occurs twice in one object; leave one out";
    return problem.empty();
  };
  Json value = Json::parse(text, keep, /*allow_exceptions=*/false);
  if (std::string_view half = loneSurrogate(text); value.is_discarded() && !half.empty())
    problem =
        std::string(half) + " is an unpaired surrogate; write both halves or the character itself";
  return problem.empty() ? value : Json(Json::value_t::discarded);
}

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
