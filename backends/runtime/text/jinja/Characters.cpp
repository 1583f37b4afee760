#include "backends/runtime/text/jinja/Characters.h"

#include <algorithm>

namespace mica::rt::jinja {

using tokenizer::charLength;
using tokenizer::decodeChar;

namespace {
bool isAscii(std::string_view character) { return static_cast<uint8_t>(character[0]) < 0x80; }
bool isAsciiDigit(char c) { return c >= '0' && c <= '9'; }
bool isAsciiLetter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
} // namespace

CharClass::CharClass(std::string_view pattern) : regex(tokenizer::Regex::compile(pattern)) {}

bool CharClass::contains(std::string_view character) const {
  tokenizer::Regex::Match match;
  return regex && tokenizer::Regex::Searcher(*regex).find(character, 0, match);
}

int64_t countChars(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; });
}

size_t offsetOf(std::string_view text, int64_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index)
    offset += charLength(text[offset]);
  return std::min(offset, text.size());
}

bool isSpace(std::string_view character) {
  uint32_t c = decodeChar(character);
  return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool isPrintable(std::string_view character) {
  static const CharClass hidden("[\\p{C}\\p{Z}]");
  if (isAscii(character))
    return character[0] >= 0x20 && character[0] < 0x7F;
  return !hidden.contains(character);
}

bool isLetter(std::string_view character) {
  static const CharClass letters("\\p{L}");
  return isAscii(character) ? isAsciiLetter(character[0]) : letters.contains(character);
}

bool isDecimal(std::string_view character) {
  static const CharClass decimals("\\p{Nd}");
  return isAscii(character) ? isAsciiDigit(character[0]) : decimals.contains(character);
}

bool isOtherNumber(std::string_view character) {
  static const CharClass others("[\\p{No}\\p{Nl}]");
  return !isAscii(character) && others.contains(character);
}

std::string_view stripped(std::string_view text, const std::string *set, bool left, bool right) {
  auto drops = [&](std::string_view character) {
    return set ? set->find(character) != std::string::npos : isSpace(character);
  };
  while (left && !text.empty() && drops(*charsOf(text).begin()))
    text.remove_prefix((*charsOf(text).begin()).size());
  while (right && !text.empty() && drops(*charsOf(text).rbegin()))
    text.remove_suffix((*charsOf(text).rbegin()).size());
  return text;
}

static bool endsLine(std::string_view character) {
  uint32_t c = decodeChar(character);
  return (c >= 10 && c <= 13) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

void forEachLine(std::string_view text, bool keepEnds,
                 const std::function<void(std::string_view line)> &visit) {
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    std::string_view character = text.substr(i, charLength(text[i]));
    i += character.size();
    if (!endsLine(character))
      continue;
    size_t end = i - character.size();
    i += character == "\r" && text.substr(i).starts_with("\n");
    visit(text.substr(begin, (keepEnds ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size())
    visit(text.substr(begin));
}

} // namespace mica::rt::jinja
