// Text searches, and replacement of what they find, that count their steps.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_SEARCH_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_SEARCH_H

#include "backends/runtime/text/jinja/Budget.h"
#include "backends/runtime/text/jinja/TrackedText.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::rt::jinja {

/// The first or the last position of `part` in `text` at or after `from`; npos: none.
size_t findText(Budget &budget, std::string_view text, std::string_view part, size_t from = 0);
size_t findLastText(Budget &budget, std::string_view text, std::string_view part);
/// str.replace of the first `count` occurrences; of all if `count` is negative.
TrackedText replaced(Budget &budget, const TrackedText &text, std::string_view before,
                     const TrackedText &after, int64_t count);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_SEARCH_H
