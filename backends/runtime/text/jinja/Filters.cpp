#include "backends/runtime/text/jinja/FilterTables.h"

#include <algorithm>

namespace mica::rt::jinja {

Filter findFilter(std::string_view name) {
  for (FilterRows rows : {textFilters(), markupFilters(), sequenceFilters()})
    for (const FilterRow &row : rows)
      if (row.name == name)
        return row.filter;
  return nullptr;
}

bool isRefusedFilter(std::string_view name) {
  static constexpr std::string_view names[] = {"pprint", "random", "urlize", "wordwrap"};
  return std::ranges::find(names, name) != std::end(names);
}

} // namespace mica::rt::jinja
