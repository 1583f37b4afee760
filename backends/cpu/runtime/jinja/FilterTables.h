// How filters are listed.
#pragma once

#include "backends/cpu/runtime/jinja/Interpreter.h"

#include <algorithm>
#include <iterator>

namespace mica::rt::jinja {

struct FilterRow {
  std::string_view name;
  Filter filter;
};

template <size_t count>
const FilterRow *findRow(const FilterRow (&rows)[count], std::string_view name) {
  auto found = std::find_if(std::begin(rows), std::end(rows),
                            [&](const FilterRow &row) { return row.name == name; });
  return found == std::end(rows) ? nullptr : found;
}

const FilterRow *findTextFilter(std::string_view name);
const FilterRow *findSequenceFilter(std::string_view name);

} // namespace mica::rt::jinja
