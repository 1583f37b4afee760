// Filters that return text, numbers or JSON.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEXTFILTERS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEXTFILTERS_H

#include "backends/runtime/text/jinja/FilterTables.h"

#include <optional>
#include <string_view>

namespace mica::rt::jinja {

/// Python's float(text); absent: not a number.
std::optional<double> parseFloat(std::string_view text);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEXTFILTERS_H
