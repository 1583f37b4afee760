// What goes to stdout.
#pragma once

#include "backends/cpu/runtime/Result.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mica::rt {

/// Writes all of `text` to stdout now. Errors: a full disk, a closed stdout.
Status writeOut(std::string_view text);

/// JSON on one line; bytes that are no UTF-8 become U+FFFD.
std::string toJsonText(const nlohmann::ordered_json &value);

} // namespace mica::rt
