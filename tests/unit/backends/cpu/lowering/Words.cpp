//===- Words.cpp - texts with placeholders --------------------------------===//

#include "tests/unit/backends/cpu/lowering/Words.h"

namespace mica::test {

std::string fill(std::string text, const Words &words) {
  for (const auto &[key, word] : words) {
    std::string pattern = "{" + key + "}";
    for (size_t at = 0; (at = text.find(pattern, at)) != std::string::npos; at += word.text.size())
      text.replace(at, pattern.size(), word.text);
  }
  return text;
}

} // namespace mica::test
