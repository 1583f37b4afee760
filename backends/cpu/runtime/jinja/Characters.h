// Strings as Python has them, sequences of code points, on UTF-8.
#pragma once

#include "backends/cpu/runtime/tokenizer/Regex.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt::jinja {

/// The number of code points.
int64_t countChars(std::string_view text);
/// Bytes before the code point of that index; all, where there are fewer.
size_t offsetOf(std::string_view text, int64_t index);
/// Each code point as a piece of the text.
std::vector<std::string_view> charsOf(std::string_view text);

/// A class of characters as PCRE2 knows it.
class CharClass {
public:
  explicit CharClass(std::string_view pattern);
  bool contains(std::string_view character) const;

private:
  Result<tokenizer::Regex> regex;
};

/// str.isspace of one code point.
bool isSpace(std::string_view character);
/// Whether repr() shows the code point as it is.
bool isPrintable(std::string_view character);
bool isLetter(std::string_view character);
/// A decimal digit of any script.
bool isDecimal(std::string_view character);
/// A number that is no decimal digit, such as a superscript.
bool isOtherNumber(std::string_view character);

/// Without the characters of `set` at its ends, or without white space where `set` is null.
std::string_view stripped(std::string_view text, const std::string *set, bool left, bool right);

/// str.splitlines().
std::vector<std::string_view> linesOf(std::string_view text, bool keepEnds);

} // namespace mica::rt::jinja
