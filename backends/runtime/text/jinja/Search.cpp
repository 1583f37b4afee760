#include "backends/runtime/text/jinja/Search.h"
#include "backends/runtime/text/jinja/Characters.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
/// Counts the bytes that a search reads; many of them are one step.
class SearchCost {
public:
  explicit SearchCost(Budget &budget) : budget(budget) { budget.spend(1); }
  void add(uint64_t count) {
    bytes += count;
    budget.spend(bytes / 16);
    bytes %= 16;
  }

private:
  Budget &budget;
  uint64_t bytes = 0;
};

/// The length of the common prefix of `part` and the text at `at`.
size_t agreement(std::string_view text, std::string_view part, size_t at) {
  auto end = std::mismatch(part.begin(), part.end(), text.begin() + static_cast<ptrdiff_t>(at));
  return static_cast<size_t>(end.first - part.begin());
}
} // namespace

size_t findText(Budget &budget, std::string_view text, std::string_view part, size_t from) {
  if (part.empty() || from > text.size())
    return from <= text.size() ? from : text.npos;
  SearchCost cost(budget);
  while (from + part.size() <= text.size()) {
    size_t at = std::min(text.find(part[0], from), text.size());
    cost.add((at - from) / 4);
    if (at + part.size() > text.size())
      break;
    size_t agreed = agreement(text, part, at);
    cost.add(agreed + 1);
    if (agreed == part.size())
      return at;
    from = at + 1;
  }
  return text.npos;
}

size_t findLastText(Budget &budget, std::string_view text, std::string_view part) {
  if (part.size() > text.size())
    return text.npos;
  SearchCost cost(budget);
  for (size_t end = text.size() - part.size() + 1; end > 0; --end) {
    size_t agreed = agreement(text, part, end - 1);
    cost.add(agreed + 1);
    if (agreed == part.size())
      return end - 1;
  }
  return text.npos;
}

TrackedText replaced(Budget &budget, const TrackedText &text, std::string_view before,
                     const TrackedText &after, int64_t count) {
  TrackedText result;
  size_t at = 0;
  for (; count != 0; --count) {
    size_t found = findText(budget, text.bytes, before, at);
    if (found == std::string::npos)
      break;
    budget.reserve(after.size() + found - at + 1);
    result.append(text, at, found);
    result.append(after);
    at = found + before.size();
    if (!before.empty())
      continue;
    // An empty text occurs before each character and at the end.
    if (found == text.size())
      return result;
    result.appendPiece(text, *Chars::Iterator(text.bytes, found));
    at = found + tokenizer::charLength(text.bytes[found]);
  }
  result.append(text, at, text.size());
  return result;
}

} // namespace mica::rt::jinja
