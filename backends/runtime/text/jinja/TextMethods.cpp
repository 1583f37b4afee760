#include "backends/runtime/text/jinja/TextMethods.h"
#include "backends/runtime/text/jinja/Case.h"
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/Format.h"
#include "backends/runtime/text/jinja/Print.h"
#include "backends/runtime/text/jinja/Search.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
std::string_view textOf(const Value &object) { return *object.text(); }

/// Parts of a string, counted before they become values.
class Pieces {
public:
  Pieces(Interpreter &interpreter, const Value &object)
      : interpreter(interpreter), text(object.tracked()) {}

  /// `part`: a substring of the string.
  void add(std::string_view part) {
    interpreter.spend(1);
    interpreter.reserveValues(valuesOfText);
    values.push_back(interpreter.text(text->piece(part)));
  }
  Value list(bool reversed = false) {
    if (reversed)
      std::reverse(values.begin(), values.end());
    return makeSequence(std::move(values));
  }
  size_t size() const { return values.size(); }
  const std::string &bytes() const { return text->bytes; }

private:
  Interpreter &interpreter;
  Text text;
  Values values;
};

/// The methods that change the letters of a string and take no arguments.
template <std::string (*change)(std::string_view)>
Value withLetters(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  interpreter.spend(textOf(object).size()); // classes of characters take a step each
  return interpreter.text(interpreter.madeOf(object, change(textOf(object))));
}

Value stripEnds(Interpreter &interpreter, const Value &object, const Arguments &arguments,
                bool left, bool right) {
  Parameters given("strip", arguments, {"chars"});
  const std::string *set = given[0] ? given[0]->text() : nullptr;
  if (given[0] && !set && !given[0]->isNone())
    fail("strip takes a string");
  interpreter.spend(textOf(object).size() / 8 * (set ? 1 + set->size() / 16 : 1));
  Text text = object.tracked();
  return interpreter.text(text->piece(stripped(text->bytes, set, left, right)));
}
Value strip(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return stripEnds(interpreter, object, arguments, true, true);
}
Value lstrip(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return stripEnds(interpreter, object, arguments, true, false);
}
Value rstrip(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return stripEnds(interpreter, object, arguments, false, true);
}

/// Splits at white space, from one end; at most `max` times.
Value wordsOf(Pieces pieces, int64_t max, bool fromRight) {
  std::string_view text = stripped(pieces.bytes(), nullptr, true, true);
  while (!text.empty()) {
    if (static_cast<int64_t>(pieces.size()) == max) {
      pieces.add(text);
      break;
    }
    Chars chars = charsOf(text);
    if (fromRight) {
      size_t begin = std::find_if(chars.rbegin(), chars.rend(), isSpace).base().offset();
      pieces.add(text.substr(begin));
      text = stripped(text.substr(0, begin), nullptr, false, true);
    } else {
      size_t end = std::find_if(chars.begin(), chars.end(), isSpace).offset();
      pieces.add(text.substr(0, end));
      text = stripped(text.substr(end), nullptr, true, false);
    }
  }
  return pieces.list(fromRight);
}

Value separated(Interpreter &interpreter, Pieces pieces, std::string_view mark, int64_t max,
                bool fromRight) {
  std::string_view text = pieces.bytes();
  for (;;) {
    size_t at = static_cast<int64_t>(pieces.size()) == max ? text.npos
                : fromRight                                ? findLastText(interpreter, text, mark)
                                                           : findText(interpreter, text, mark);
    if (at == text.npos)
      break;
    pieces.add(fromRight ? text.substr(at + mark.size()) : text.substr(0, at));
    text = fromRight ? text.substr(0, at) : text.substr(at + mark.size());
  }
  pieces.add(text);
  return pieces.list(fromRight);
}

Value splitFrom(Interpreter &interpreter, const Value &object, const Arguments &arguments,
                bool fromRight) {
  Parameters given("split", arguments, {"sep", "maxsplit"});
  int64_t max = given.integer(1, -1);
  Pieces pieces(interpreter, object);
  if (!given[0] || given[0]->isNone()) {
    interpreter.spend(pieces.bytes().size() / 8);
    return wordsOf(std::move(pieces), max, fromRight);
  }
  std::string mark = given.text(0, "");
  if (mark.empty())
    fail("the separator of split is empty");
  return separated(interpreter, std::move(pieces), mark, max, fromRight);
}
Value split(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return splitFrom(interpreter, object, arguments, false);
}
Value rsplit(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return splitFrom(interpreter, object, arguments, true);
}

Value splitlines(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  bool keep = Parameters("splitlines", arguments, {"keepends"}).flag(0, false);
  Pieces pieces(interpreter, object);
  forEachLine(pieces.bytes(), keep, [&](std::string_view line) { pieces.add(line); });
  return pieces.list();
}

Value partitionAt(Interpreter &interpreter, const Value &object, const Arguments &arguments,
                  bool last) {
  TrackedText mark = Parameters("partition", arguments, {"sep"}, 1).tracked(0, "");
  if (mark.size() == 0)
    fail("the separator of partition is empty");
  Text source = object.tracked();
  std::string_view text = source->bytes;
  size_t at =
      last ? findLastText(interpreter, text, mark.bytes) : findText(interpreter, text, mark.bytes);
  Values parts = {Value(""), Value(""), Value("")};
  if (at == text.npos) {
    parts[last ? 2 : 0] = object;
  } else {
    parts = {Value(source->piece(text.substr(0, at))), Value(mark),
             Value(source->piece(text.substr(at + mark.size())))};
  }
  interpreter.reserve(text.size());
  return makeTuple(std::move(parts));
}
Value partition(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return partitionAt(interpreter, object, arguments, false);
}
Value rpartition(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return partitionAt(interpreter, object, arguments, true);
}

/// The part of a string between `start` and `end`, as in slices; absent: `start` is after the end
/// of the string.
struct Part {
  std::string_view text;
  int64_t start; ///< In code points.
};
std::optional<Part> partOf(std::string_view text, const Parameters &given, size_t index) {
  auto bound = [&](size_t at, int64_t fallback) {
    return given[at] && !given[at]->isNone() ? given.integer(at, 0) : fallback;
  };
  int64_t size = countChars(text), start = bound(index, 0), end = bound(index + 1, size);
  start = std::max<int64_t>(start < 0 ? start + size : start, 0);
  end = std::min(std::max<int64_t>(end < 0 ? end + size : end, 0), size);
  if (start > end)
    return std::nullopt;
  size_t from = offsetOf(text, start), to = offsetOf(text, end);
  return Part{text.substr(from, to - from), start};
}

bool hasEnd(Interpreter &interpreter, std::string_view text, const Value &end, bool front) {
  interpreter.spend(1);
  if (const std::string *part = end.text())
    return front ? text.starts_with(*part) : text.ends_with(*part);
  const Sequence *options = end.sequence();
  if (!options || options->kind != Sequence::Tuple)
    fail("startswith and endswith take a string or a tuple of them");
  return std::any_of(options->items.begin(), options->items.end(), [&](const Value &option) {
    if (!option.text())
      fail("startswith and endswith take a string or a tuple of them");
    return hasEnd(interpreter, text, option, front);
  });
}
Value startswith(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("startswith", arguments, {"prefix", "start", "end"}, 1);
  auto part = partOf(textOf(object), given, 1);
  return hasEnd(interpreter, part ? part->text : "", *given[0], true) && part;
}
Value endswith(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("endswith", arguments, {"suffix", "start", "end"}, 1);
  auto part = partOf(textOf(object), given, 1);
  return hasEnd(interpreter, part ? part->text : "", *given[0], false) && part;
}
Value removeprefix(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  std::string part = Parameters("removeprefix", arguments, {"prefix"}, 1).text(0, "");
  Text source = object.tracked();
  std::string_view text = source->bytes;
  return interpreter.text(source->piece(text.substr(text.starts_with(part) ? part.size() : 0)));
}
Value removesuffix(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  std::string part = Parameters("removesuffix", arguments, {"suffix"}, 1).text(0, "");
  Text source = object.tracked();
  std::string_view text = source->bytes;
  return interpreter.text(
      source->piece(text.substr(0, text.size() - (text.ends_with(part) ? part.size() : 0))));
}

Value replace(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  return interpreter.text(replaced(interpreter, *object.tracked(), given.text(0, ""),
                                   given.tracked(1, ""), given.integer(2, -1)));
}

/// The position of a text in code points; -1: not found.
int64_t findIndex(Interpreter &interpreter, const Value &object, const Arguments &arguments,
                  bool last) {
  Parameters given("find", arguments, {"sub", "start", "end"}, 1);
  std::string wanted = given.text(0, "");
  auto part = partOf(textOf(object), given, 1);
  size_t at = !part  ? std::string_view::npos
              : last ? findLastText(interpreter, part->text, wanted)
                     : findText(interpreter, part->text, wanted);
  return at == std::string_view::npos ? -1 : part->start + countChars(part->text.substr(0, at));
}
Value find(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return findIndex(interpreter, object, arguments, false);
}
Value rfind(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return findIndex(interpreter, object, arguments, true);
}
Value requireFound(int64_t place) {
  if (place < 0)
    fail("index does not find its string");
  return place;
}
Value indexOf(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return requireFound(findIndex(interpreter, object, arguments, false));
}
Value lastIndexOf(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return requireFound(findIndex(interpreter, object, arguments, true));
}

Value count(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("count", arguments, {"sub", "start", "end"}, 1);
  std::string wanted = given.text(0, "");
  auto part = partOf(textOf(object), given, 1);
  if (!part)
    return int64_t(0);
  if (wanted.empty())
    return countChars(part->text) + 1;
  int64_t found = 0;
  for (size_t at = findText(interpreter, part->text, wanted); at != std::string_view::npos;
       at = findText(interpreter, part->text, wanted, at + wanted.size()))
    ++found;
  return found;
}

Value join(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("join", arguments, {"iterable"}, 1);
  requireDefined(*given[0]);
  Text mark = object.tracked();
  TrackedText text;
  bool first = true;
  for (const Value &item : interpreter.items(*given[0])) {
    Text piece = object.escaped() ? escape(interpreter, item).tracked() : item.tracked();
    if (!piece)
      fail("join takes strings, not " + typeName(item));
    interpreter.reserve(piece->size() + mark->size());
    if (!std::exchange(first, false))
      text.append(*mark);
    text.append(*piece);
  }
  return Value(std::move(text));
}

Value format(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  if (object.escaped())
    fail("the format of an escaped text is not supported");
  return interpreter.text(formatBraces(interpreter, *object.tracked(), arguments));
}
Value formatMap(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  const Value &values = *Parameters("format_map", arguments, {"mapping"}, 1)[0];
  if (!values.mapping())
    fail("format_map takes a dict, not " + typeName(values));
  Arguments named;
  interpreter.reserveValues(3 * values.mapping()->entries.size());
  for (const auto &[key, value] : values.mapping()->entries)
    if (key.text())
      named.named.emplace_back(*key.text(), value);
  return format(interpreter, object, named);
}

/// Whether all characters are of a kind, and there is at least one.
template <bool (*isOne)(std::string_view)>
Value all(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  interpreter.spend(textOf(object).size());
  Chars chars = charsOf(textOf(object));
  return !chars.empty() && std::all_of(chars.begin(), chars.end(), isOne);
}
bool isAlnumChar(std::string_view character) {
  return isLetter(character) || isDecimal(character) || isOtherNumber(character);
}
/// The same, also true for an empty text.
template <bool (*isOne)(std::string_view)>
Value allOrNone(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  interpreter.spend(textOf(object).size());
  Chars chars = charsOf(textOf(object));
  return std::all_of(chars.begin(), chars.end(), isOne);
}
bool isAsciiChar(std::string_view character) { return character.size() == 1; }

template <bool (*holds)(std::string_view)>
Value whole(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  interpreter.spend(textOf(object).size());
  return holds(textOf(object));
}
bool isIdentifier(std::string_view text) {
  for (std::string_view character : charsOf(text))
    if (!isAsciiChar(character))
      fail("isidentifier is not supported for '" + std::string(character) + "'");
  auto inName = [](char c) { return c == '_' || isAlnumChar(std::string_view(&c, 1)); };
  return !text.empty() && !isDecimal(text.substr(0, 1)) &&
         std::all_of(text.begin(), text.end(), inName);
}

Value pad(Interpreter &interpreter, const Value &object, const Arguments &arguments,
          int64_t (*leftOf)(int64_t missing, int64_t width)) {
  Parameters given("ljust, rjust and center", arguments, {"width", "fillchar"}, 1);
  TrackedText fill = given.tracked(1, " "), padded;
  Text text = object.tracked();
  if (countChars(fill.bytes) != 1)
    fail("the fill of ljust, rjust and center is one character");
  int64_t width = given.integer(0, 0);
  int64_t missing = std::max<int64_t>(width - countChars(text->bytes), 0);
  interpreter.reserve(static_cast<uint64_t>(missing) * fill.size());
  int64_t left = leftOf(missing, width);
  for (int64_t i = 0; i <= missing; ++i) {
    if (i == left)
      padded.append(*text);
    if (i < missing)
      padded.append(fill);
  }
  return interpreter.text(std::move(padded));
}
Value ljust(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return pad(interpreter, object, arguments, [](int64_t, int64_t) { return int64_t(0); });
}
Value rjust(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return pad(interpreter, object, arguments, [](int64_t missing, int64_t) { return missing; });
}
Value center(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return pad(interpreter, object, arguments,
             [](int64_t missing, int64_t width) { return missing / 2 + (missing & width & 1); });
}

Value zfill(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  int64_t width = Parameters("zfill", arguments, {"width"}, 1).integer(0, 0);
  Text text = object.tracked();
  int64_t missing = std::max<int64_t>(width - countChars(text->bytes), 0);
  interpreter.reserve(static_cast<uint64_t>(missing));
  size_t sign = text->bytes.starts_with("+") || text->bytes.starts_with("-") ? 1 : 0;
  TrackedText filled;
  filled.append(*text, 0, sign);
  filled.append(std::string(static_cast<size_t>(missing), '0'));
  filled.append(*text, sign, text->size());
  return interpreter.text(std::move(filled));
}

Value expandtabs(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  int64_t size = Parameters("expandtabs", arguments, {"tabsize"}).integer(0, 8), column = 0;
  Text source = object.tracked();
  TrackedText text;
  for (std::string_view character : charsOf(source->bytes)) {
    if (character != "\t") {
      text.appendPiece(*source, character);
      column = character == "\n" || character == "\r" ? 0 : column + 1;
    } else if (size > 0) {
      int64_t missing = size - column % size;
      interpreter.reserve(static_cast<uint64_t>(missing));
      text.append(std::string(static_cast<size_t>(missing), ' '));
      column += missing;
    }
  }
  return interpreter.text(std::move(text));
}

constexpr MethodRow ofStrings[] = {
    {"upper", withLetters<toUpper>, Markup::Marked},
    {"lower", withLetters<toLower>, Markup::Marked},
    {"capitalize", withLetters<capitalized>, Markup::Marked},
    {"title", withLetters<titled>, Markup::Marked},
    {"swapcase", withLetters<caseSwapped>, Markup::Marked},
    {"casefold", withLetters<caseFolded>},
    {"strip", strip, Markup::Escaping},
    {"lstrip", lstrip, Markup::Escaping},
    {"rstrip", rstrip, Markup::Escaping},
    {"split", split, Markup::Marked},
    {"rsplit", rsplit, Markup::Marked},
    {"splitlines", splitlines, Markup::Marked},
    {"partition", partition, Markup::Escaping},
    {"rpartition", rpartition, Markup::Escaping},
    {"startswith", startswith},
    {"endswith", endswith},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace, Markup::Escaping},
    {"find", find},
    {"rfind", rfind},
    {"index", indexOf},
    {"rindex", lastIndexOf},
    {"count", count},
    {"join", join, Markup::Marked},
    {"format", format},
    {"format_map", formatMap},
    {"isdigit", all<isDigit>},
    {"isdecimal", all<isDecimal>},
    {"isnumeric", all<isNumeric>},
    {"isalpha", all<isLetter>},
    {"isalnum", all<isAlnumChar>},
    {"isspace", all<isSpace>},
    {"isascii", allOrNone<isAsciiChar>},
    {"isprintable", allOrNone<isPrintable>},
    {"islower", whole<isLowerText>},
    {"isupper", whole<isUpperText>},
    {"istitle", whole<isTitleText>},
    {"isidentifier", whole<isIdentifier>},
    {"ljust", ljust, Markup::Escaping},
    {"rjust", rjust, Markup::Escaping},
    {"center", center, Markup::Escaping},
    {"zfill", zfill, Markup::Marked},
    {"expandtabs", expandtabs, Markup::Marked},
    {"encode", nullptr},
    {"maketrans", nullptr},
    {"translate", nullptr},
};
} // namespace

MethodRows textMethods() { return ofStrings; }

} // namespace mica::rt::jinja
