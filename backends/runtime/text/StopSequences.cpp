#include "backends/runtime/text/StopSequences.h"

#include <algorithm>

namespace mica::rt {

size_t begunAtEnd(std::string_view text, std::string_view string) {
  for (size_t size = std::min(text.size(), string.size() - 1); size > 0; --size)
    if (text.ends_with(string.substr(0, size)))
      return size;
  return 0;
}

std::string StopSequences::push(std::string_view text) {
  if (found)
    return {};
  held += text;
  size_t end = held.npos, begun = 0;
  for (const std::string &string : strings) {
    end = std::min(end, held.find(string));
    begun = std::max(begun, begunAtEnd(held, string));
  }
  found = end != held.npos;
  std::string out = held.substr(0, found ? end : held.size() - begun);
  held.erase(0, found ? held.size() : out.size());
  return out;
}

std::string StopSequences::finish() {
  std::string rest;
  rest.swap(held);
  return rest;
}

} // namespace mica::rt
