// Python's strings, sequences of code points, stored as UTF-8.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_CHARACTERS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_CHARACTERS_H

#include "backends/runtime/text/base/Regex.h"
#include "backends/runtime/text/base/Utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>

namespace mica::rt::jinja {

/// The number of code points.
int64_t countChars(std::string_view text);
/// The byte offset of the code point with this index; the size if there are fewer.
size_t offsetOf(std::string_view text, int64_t index);
/// The code points of a well-formed text, each as a substring.
class Chars {
public:
  class Iterator {
  public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = std::string_view;
    using reference = std::string_view;
    using pointer = const std::string_view *;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    Iterator(std::string_view text, size_t at) : text(text), at(at) {}
    std::string_view operator*() const { return text.substr(at, tokenizer::charLength(text[at])); }
    Iterator &operator++() {
      at = std::min(at + tokenizer::charLength(text[at]), text.size());
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    Iterator &operator--() {
      do
        --at;
      while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
      return *this;
    }
    Iterator operator--(int) {
      Iterator before = *this;
      --*this;
      return before;
    }
    bool operator==(const Iterator &other) const { return at == other.at; }
    /// Its byte offset.
    size_t offset() const { return at; }

  private:
    std::string_view text;
    size_t at = 0;
  };

  explicit Chars(std::string_view text) : text(text) {}
  Iterator begin() const { return {text, 0}; }
  Iterator end() const { return {text, text.size()}; }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  bool empty() const { return text.empty(); }

private:
  std::string_view text;
};
inline Chars charsOf(std::string_view text) { return Chars(text); }

/// A character class of PCRE2.
class CharClass {
public:
  explicit CharClass(std::string_view pattern);
  bool contains(std::string_view character) const;

private:
  Result<tokenizer::Regex> regex;
};

/// str.isspace of one code point.
bool isSpace(std::string_view character);
/// Whether repr() prints the code point unescaped.
bool isPrintable(std::string_view character);
bool isLetter(std::string_view character);
/// A decimal digit of any script.
bool isDecimal(std::string_view character);
/// A number that is not a decimal digit, such as a superscript.
bool isOtherNumber(std::string_view character);

/// Removes the characters of `set` from both ends, or white space if `set` is null.
std::string_view stripped(std::string_view text, const std::string *set, bool left, bool right);

/// str.splitlines(), line by line.
void forEachLine(std::string_view text, bool keepEnds,
                 const std::function<void(std::string_view line)> &visit);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_CHARACTERS_H
