#include "backends/runtime/commands/TokenList.h"

#include <charconv>
#include <string_view>

namespace mica::rt {

static std::string_view trimmed(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  return first == text.npos ? text.substr(0, 0)
                            : text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

Result<Tokens> parseTokenList(const std::string &list) {
  Tokens tokens;
  std::string_view rest = list;
  for (bool more = true; more;) {
    size_t comma = rest.find(',');
    more = comma != rest.npos;
    std::string_view entry = trimmed(rest.substr(0, comma));
    rest = more ? rest.substr(comma + 1) : std::string_view();
    int32_t token = 0;
    auto [end, failure] = std::from_chars(entry.data(), entry.data() + entry.size(), token);
    if (failure != std::errc() || end != entry.data() + entry.size() || token < 0)
      return Error{"'" + std::string(entry) +
                   "' is not a token id; write numbers with commas: 1,2,3"};
    tokens.push_back(token);
  }
  return tokens;
}

} // namespace mica::rt
