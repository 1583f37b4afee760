#include "backends/runtime/text/jinja/Case.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/jinja/CaseTables.h"
#include "backends/runtime/text/jinja/Characters.h"

#include <algorithm>
#include <iterator>

namespace mica::rt::jinja {

using tokenizer::decodeChar;

namespace {
bool isAscii(uint32_t c) { return c < 0x80; }

/// Letter classes of PCRE2 and Python.
enum Kind { Lower, Upper, Title, None };

Kind kindOf(std::string_view character) {
  uint32_t c = decodeChar(character);
  if (isAscii(c))
    return c >= 'a' && c <= 'z' ? Lower : c >= 'A' && c <= 'Z' ? Upper : None;
  static const CharClass lower("[\\p{Ll}" + std::string(otherLower) + "]");
  static const CharClass upper("[\\p{Lu}" + std::string(otherUpper) + "]");
  static const CharClass title("\\p{Lt}");
  return lower.contains(character)   ? Lower
         : upper.contains(character) ? Upper
         : title.contains(character) ? Title
                                     : None;
}

/// Characters that are skipped when looking for the end of a word.
bool isIgnored(std::string_view character) {
  static const CharClass ignored("[\\p{Mn}\\p{Me}\\p{Cf}\\p{Lm}\\p{Sk}'.:^`" +
                                 std::string(otherIgnored) + "]");
  return ignored.contains(character);
}

template <size_t count>
const std::string_view *ownText(const CaseText (&rows)[count], uint32_t letter) {
  auto found = std::lower_bound(std::begin(rows), std::end(rows), letter,
                                [](const CaseText &row, uint32_t c) { return row.letter < c; });
  return found != std::end(rows) && found->letter == letter ? &found->text : nullptr;
}

template <size_t count>
std::string otherOf(const CaseRun (&runs)[count], std::string_view character, uint32_t letter) {
  auto found = std::lower_bound(std::begin(runs), std::end(runs), letter,
                                [](const CaseRun &run, uint32_t c) { return run.last < c; });
  if (found == std::end(runs) || letter < found->first ||
      (letter - found->first) % found->step != 0)
    return std::string(character);
  std::string text;
  tokenizer::appendChar(text,
                        static_cast<uint32_t>(static_cast<int64_t>(letter) + found->distance));
  return text;
}

std::string upperOf(std::string_view character) {
  uint32_t c = decodeChar(character);
  if (isAscii(c))
    return std::string(1, static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c));
  const std::string_view *own = ownText(upperTexts, c);
  return own ? std::string(*own) : otherOf(upperRuns, character, c);
}

std::string lowerOf(std::string_view character) {
  uint32_t c = decodeChar(character);
  if (isAscii(c))
    return std::string(1, static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  const std::string_view *own = ownText(lowerTexts, c);
  return own ? std::string(*own) : otherOf(lowerRuns, character, c);
}

std::string titleOf(std::string_view character) {
  const std::string_view *own = ownText(titleTexts, decodeChar(character));
  return own ? std::string(*own) : upperOf(character);
}

std::string foldOf(std::string_view character) {
  uint32_t c = decodeChar(character);
  if (c == 0x131)
    return std::string(character);
  // Cherokee folds to its capitals.
  std::string capitals = toUpper(lowerOf(character)), result;
  for (std::string_view upper : charsOf(capitals))
    result += (c >= 0x13A0 && c <= 0x13FD) || (c >= 0xAB70 && c <= 0xABBF) ? upper : lowerOf(upper);
  return result;
}

/// The lower case of this character of `chars`: a capital sigma that follows a letter and precedes
/// none is at the end of a word.
std::string lowerAt(const Chars &chars, Chars::Iterator place) {
  if (decodeChar(*place) != 0x3A3)
    return lowerOf(*place);
  auto seesLetter = [](auto begin, auto end) {
    auto seen = std::find_if_not(begin, end, isIgnored);
    return seen != end && kindOf(*seen) != None;
  };
  bool ends = seesLetter(std::make_reverse_iterator(place), chars.rend()) &&
              !seesLetter(std::next(place), chars.end());
  return ends ? "ς" : "σ";
}
} // namespace

std::string toUpper(std::string_view text) {
  std::string result;
  for (std::string_view character : charsOf(text))
    result += upperOf(character);
  return result;
}

std::string toLower(std::string_view text) {
  Chars chars = charsOf(text);
  std::string result;
  for (auto it = chars.begin(); it != chars.end(); ++it)
    result += lowerAt(chars, it);
  return result;
}

std::string capitalized(std::string_view text) {
  Chars chars = charsOf(text);
  std::string result;
  for (auto it = chars.begin(); it != chars.end(); ++it)
    result += it == chars.begin() ? titleOf(*it) : lowerAt(chars, it);
  return result;
}

std::string titled(std::string_view text) {
  Chars chars = charsOf(text);
  std::string result;
  bool within = false;
  for (auto it = chars.begin(); it != chars.end(); ++it) {
    result += within ? lowerAt(chars, it) : titleOf(*it);
    within = kindOf(*it) != None;
  }
  return result;
}

std::string caseSwapped(std::string_view text) {
  Chars chars = charsOf(text);
  std::string result;
  for (auto it = chars.begin(); it != chars.end(); ++it) {
    Kind kind = kindOf(*it);
    result += kind == Upper ? lowerAt(chars, it) : kind == Lower ? upperOf(*it) : std::string(*it);
  }
  return result;
}

std::string caseFolded(std::string_view text) {
  std::string result;
  for (std::string_view character : charsOf(text))
    result += foldOf(character);
  return result;
}

/// Whether there are cased letters, all of this case.
static bool isAll(std::string_view text, Kind wanted) {
  bool any = false;
  for (std::string_view character : charsOf(text)) {
    Kind kind = kindOf(character);
    if (kind != None && kind != wanted)
      return false;
    any |= kind == wanted;
  }
  return any;
}

bool isLowerText(std::string_view text) { return isAll(text, Lower); }
bool isUpperText(std::string_view text) { return isAll(text, Upper); }

bool isTitleText(std::string_view text) {
  bool any = false, within = false;
  for (std::string_view character : charsOf(text)) {
    Kind kind = kindOf(character);
    if (kind != None && (kind == Lower) != within)
      return false;
    within = kind != None;
    any |= within;
  }
  return any;
}

bool isDigit(std::string_view character) {
  static const CharClass others("[" + std::string(otherDigits) + "]");
  return isDecimal(character) || others.contains(character);
}

bool isNumeric(std::string_view character) {
  static const CharClass letters("[" + std::string(numericLetters) + "]");
  return isDecimal(character) || isOtherNumber(character) || letters.contains(character);
}

} // namespace mica::rt::jinja
