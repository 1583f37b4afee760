// JSON that a user hands in.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

namespace mica::rt {

/// How deep values may stand in each other: what copies and writes them calls itself.
inline constexpr int mostNested = 100;

/// The value of a text: discarded where it is no JSON, and with `tooDeep` set where it is nested
/// deeper than that.
template <typename Json> Json parseNested(std::string_view text, bool &tooDeep) {
  tooDeep = false;
  auto keep = [&](int depth, typename Json::parse_event_t, Json &) {
    tooDeep |= depth > mostNested;
    return !tooDeep;
  };
  Json value = Json::parse(text, keep, /*allow_exceptions=*/false);
  return tooDeep ? Json(Json::value_t::discarded) : value;
}

} // namespace mica::rt
