// The tables of filters. Some filters and tests apply others by name (`map`, `select`, `is
// filter`), so that the tables and the search in them need each other.
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

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_FILTERTABLES_H
