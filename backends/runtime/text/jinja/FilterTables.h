// The tables of filters.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_FILTERTABLES_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_FILTERTABLES_H

#include "backends/runtime/text/jinja/Interpreter.h"

#include <span>

namespace mica::rt::jinja {

struct FilterRow {
  std::string_view name;
  Filter filter;
};
using FilterRows = std::span<const FilterRow>;

FilterRows textFilters();
FilterRows markupFilters();
FilterRows sequenceFilters();

/// Whether Jinja2 has a filter of this name that is not implemented here.
bool isRefusedFilter(std::string_view name);

/// Python's float(text); absent: not a number.
std::optional<double> parseFloat(std::string_view text);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_FILTERTABLES_H
