// Filters that return text, numbers or JSON.
#include "backends/runtime/text/jinja/TextFilters.h"
#include "backends/runtime/text/jinja/Case.h"
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/Format.h"
#include "backends/runtime/text/jinja/Operators.h"
#include "backends/runtime/text/jinja/Print.h"
#include "backends/runtime/text/jinja/Search.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace mica::rt::jinja {

std::optional<double> parseFloat(std::string_view text) {
  std::string digits(stripped(text, nullptr, true, true));
  for (size_t i = digits.find('_'); i != digits.npos; i = digits.find('_', i)) {
    auto digitAt = [&](size_t at) {
      return at < digits.size() && digits[at] >= '0' && digits[at] <= '9';
    };
    if (i == 0 || !digitAt(i - 1) || !digitAt(i + 1))
      return std::nullopt;
    digits.erase(i, 1);
  }
  std::string lower = digits;
  for (char &c : lower)
    c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  if (lower.empty() || lower.find_first_not_of("0123456789.+-einfaty") != lower.npos)
    return std::nullopt;
  char *end = nullptr;
  double value = std::strtod(lower.c_str(), &end);
  if (*end != '\0')
    return std::nullopt;
  return value;
}

namespace {
/// Applies `change` to all letters; each lookup of a character class is a step.
Value inCase(Interpreter &interpreter, const Value &value,
             std::string (*change)(std::string_view)) {
  Text text = toText(interpreter, value);
  interpreter.spend(text->size());
  return interpreter.textLike(value, interpreter.madeOf(value, change(text->bytes)));
}

Value upper(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("upper", arguments);
  return inCase(interpreter, value, toUpper);
}

Value lower(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("lower", arguments);
  return inCase(interpreter, value, toLower);
}

Value capitalize(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("capitalize", arguments);
  return inCase(interpreter, value, capitalized);
}

/// Words begin after white space, `-`, and opening brackets, and are capitalized separately.
Value title(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("title", arguments);
  Text text = toText(interpreter, value);
  std::string result, rest;
  bool begins = true;
  interpreter.spend(text->size());
  for (std::string_view character : charsOf(text->bytes)) {
    bool mark =
        isSpace(character) || std::string_view("-({[<").find(character) != std::string::npos;
    if (mark)
      result += toLower(std::exchange(rest, {}));
    if (begins || mark)
      result += toUpper(character);
    else
      rest += character;
    begins = mark;
  }
  return interpreter.text(interpreter.madeOf(value, result + toLower(rest)));
}

Value trim(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("trim", arguments, {"chars"});
  const std::string *set = given[0] ? given[0]->text() : nullptr;
  if (given[0] && !set && !given[0]->isNone())
    fail("trim takes a string");
  Value escaped;
  if (set && value.escaped()) {
    escaped = escape(interpreter, *given[0]);
    set = escaped.text();
  }
  Text text = toText(interpreter, value);
  interpreter.spend(text->size() / 8 * (set ? 1 + set->size() / 16 : 1));
  return interpreter.textLike(value, text->piece(stripped(text->bytes, set, true, true)));
}

Value string(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("string", arguments);
  return interpreter.textLike(value, *toText(interpreter, value));
}

Value replace(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  bool all = !given[2] || given[2]->isNone();
  Text text = toText(interpreter, value), before = toText(interpreter, *given[0]);
  return interpreter.text(replaced(interpreter, *text, before->bytes,
                                   *toText(interpreter, *given[1]),
                                   all ? -1 : given.integer(2, -1)));
}

std::string blanks(Interpreter &interpreter, int64_t count) {
  interpreter.reserve(static_cast<uint64_t>(std::max<int64_t>(count, 0)));
  return std::string(static_cast<size_t>(std::max<int64_t>(count, 0)), ' ');
}

Value center(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  int64_t width = Parameters("center", arguments, {"width"}).integer(0, 80);
  Text text = toText(interpreter, value);
  int64_t missing = std::max<int64_t>(width - countChars(text->bytes), 0);
  int64_t left = missing / 2 + (missing & width & 1);
  TrackedText result;
  result.append(blanks(interpreter, left));
  result.append(*text);
  result.append(blanks(interpreter, missing - left));
  return interpreter.textLike(value, std::move(result));
}

Value indent(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("indent", arguments, {"width", "first", "blank"});
  requireDefined(value);
  if (!value.text())
    fail("indent takes a string, not " + typeName(value));
  TrackedText margin;
  if (Text word = given[0] ? given[0]->tracked() : nullptr)
    margin = *word;
  else
    margin.append(blanks(interpreter, given.integer(0, 4)));
  TrackedText source = *value.tracked(), text;
  source.append("\n");
  bool first = true, empty = given.flag(2, false);
  forEachLine(source.bytes, false, [&](std::string_view line) {
    interpreter.spend(1);
    interpreter.reserve(margin.size());
    text.append(first ? "" : "\n");
    if (first ? given.flag(1, false) : empty || !line.empty())
      text.append(margin);
    text.appendPiece(source, line);
    first = false;
  });
  return interpreter.textLike(value, std::move(text));
}

Value truncate(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("truncate", arguments, {"length", "killwords", "end", "leeway"});
  int64_t length = given.integer(0, 255), leeway = given.integer(3, 5);
  TrackedText end = given.tracked(2, "...");
  Text text = toText(interpreter, value);
  int64_t ending = countChars(end.bytes);
  if (length < ending || leeway < 0)
    fail("truncate takes a length of at least its end's, and no negative leeway");
  const Sequence *sequence = value.sequence();
  const Mapping *mapping = value.mapping();
  bool counted =
      mapping || value.isUndefined() || (sequence && sequence->kind != Sequence::Generator);
  size_t count = mapping ? mapping->entries.size() : sequence ? sequence->items.size() : 0;
  if (counted && static_cast<int64_t>(count) <= length + leeway)
    return value;
  if (!value.text())
    fail("truncate takes a string, not " + typeName(value));
  if (countChars(text->bytes) <= length + leeway)
    return value;
  std::string_view kept(text->bytes.data(), offsetOf(text->bytes, length - ending));
  if (size_t space = kept.rfind(' '); !given.flag(1, false) && space != kept.npos)
    kept = kept.substr(0, space);
  TrackedText result = text->piece(kept);
  result.append(value.escaped() ? *escape(interpreter, Value(end)).tracked() : end);
  return interpreter.textLike(value, std::move(result));
}

Value wordcount(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("wordcount", arguments);
  int64_t count = 0;
  bool within = false;
  Text text = toText(interpreter, value);
  interpreter.spend(text->size());
  for (std::string_view character : charsOf(text->bytes)) {
    bool word =
        character == "_" || isLetter(character) || isDecimal(character) || isOtherNumber(character);
    count += word && !within;
    within = word;
  }
  return count;
}

Value format(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  if (!arguments.named.empty() && !arguments.positional.empty())
    fail("format takes values with names or without, not both");
  if (value.escaped())
    fail("the format of an escaped text is not supported");
  Value values = makeTuple(arguments.positional);
  if (!arguments.named.empty()) {
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(arguments.named.size());
    for (const auto &[name, argument] : arguments.named)
      entries.emplace_back(Value::own(name), argument);
    values = makeMapping(interpreter, std::move(entries));
  }
  Text text = toText(interpreter, value);
  return interpreter.text(formatPercent(interpreter, *text, values));
}

Value tojson(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("tojson", arguments, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = given.flag(0, false);
  style.sortKeys = given.flag(3, false);
  if (given[1] && !given[1]->isNone()) {
    style.itemSeparator = {",", {}};
    Text word = given[1]->tracked();
    style.indent = word ? *word : TrackedText{blanks(interpreter, given.integer(1, 0)), {}};
    if (style.indent->size() > 64)
      fail("tojson indents by at most 64 characters");
  }
  if (given[2] && !given[2]->isNone()) {
    Values parts = interpreter.items(*given[2]);
    if (parts.size() != 2 || !parts[0].text() || !parts[1].text())
      fail("the separators of tojson are two strings");
    style.itemSeparator = *parts[0].tracked();
    style.keySeparator = *parts[1].tracked();
  }
  return interpreter.text(toJson(interpreter, value, style));
}

Value absolute(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("abs", arguments);
  requireDefined(value);
  if (auto integer = value.integer())
    return *integer < 0 ? combine(interpreter, "-", Value(int64_t(0)), Value(*integer))
                        : Value(*integer);
  if (auto *real = value.real())
    return std::fabs(*real);
  fail("abs takes a number, not " + typeName(value));
}

/// Python's int(text, base).
std::optional<int64_t> parseInteger(std::string_view text, int64_t base) {
  text = stripped(text, nullptr, true, true);
  bool negative = text.starts_with("-");
  if (negative || text.starts_with("+"))
    text.remove_prefix(1);
  if (base != 10 && text.size() > 2 && text[0] == '0')
    if (int64_t radix = (text[1] | 32) == 'x'   ? 16
                        : (text[1] | 32) == 'o' ? 8
                        : (text[1] | 32) == 'b' ? 2
                                                : 0;
        radix != 0 && (radix == base || base == 0)) {
      base = radix;
      text.remove_prefix(text[2] == '_' ? 3 : 2);
    }
  if (base < 2 || base > 36)
    fail("int takes a base from 2 to 36");
  std::string digits = negative ? "-" : "";
  bool mark = true;
  for (char c : text) {
    if (c == '_' && mark)
      return std::nullopt;
    mark = c == '_';
    if (!mark)
      digits += c;
  }
  int64_t value = 0;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, static_cast<int>(base));
  if (mark || end != digits.data() + digits.size() || text.starts_with("-"))
    return std::nullopt;
  if (error == std::errc::result_out_of_range)
    fail("a whole number is beyond 64 bits");
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

Value wholeOf(double real, const Value &fallback, bool first) {
  if (std::isnan(real) || (std::isinf(real) && !first))
    return fallback;
  if (!(std::fabs(real) < 0x1p63))
    fail("a whole number is beyond 64 bits");
  return static_cast<int64_t>(real);
}

Value toInteger(Interpreter &, const Value &value, const Arguments &arguments) {
  Parameters given("int", arguments, {"default", "base"});
  requireDefined(value);
  Value fallback = given[0] ? *given[0] : Value(int64_t(0));
  if (auto integer = value.integer())
    return *integer;
  if (auto *real = value.real())
    return wholeOf(*real, fallback, true);
  if (!value.text())
    return fallback;
  if (auto integer = parseInteger(*value.text(), given.integer(1, 10)))
    return *integer;
  auto real = parseFloat(*value.text());
  return real ? wholeOf(*real, fallback, false) : fallback;
}

Value toFloat(Interpreter &, const Value &value, const Arguments &arguments) {
  Parameters given("float", arguments, {"default"});
  requireDefined(value);
  if (auto number = value.number())
    return *number;
  auto real = value.text() ? parseFloat(*value.text()) : std::nullopt;
  return real ? Value(*real) : given[0] ? *given[0] : Value(0.0);
}

Value round(Interpreter &, const Value &value, const Arguments &arguments) {
  Parameters given("round", arguments, {"precision", "method"});
  std::string method = given.text(1, "common");
  int64_t precision = given.integer(0, 0);
  requireDefined(value);
  if (!value.number() || std::abs(precision) > 300 ||
      (method != "common" && method != "ceil" && method != "floor"))
    fail("round takes a number, at most 300 digits, and the methods common, ceil and floor");
  double number = *value.number();
  if (method != "common") {
    double factor = std::pow(10.0, static_cast<double>(precision));
    double scaled = number * factor;
    if (!std::isfinite(scaled))
      fail("round takes finite numbers");
    return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / factor;
  }
  if (precision < 0)
    fail("round to less than whole numbers is not supported");
  if (value.integer())
    return *value.integer();
  if (!std::isfinite(number))
    return number;
  char text[700];
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(precision), number);
  return std::strtod(text, nullptr);
}
} // namespace

FilterRows textFilters() {
  static constexpr FilterRow rows[] = {
      {"upper", upper},   {"lower", lower},       {"capitalize", capitalize}, {"title", title},
      {"trim", trim},     {"string", string},     {"replace", replace},       {"center", center},
      {"indent", indent}, {"truncate", truncate}, {"wordcount", wordcount},   {"format", format},
      {"tojson", tojson}, {"abs", absolute},      {"int", toInteger},         {"float", toFloat},
      {"round", round},
  };
  return rows;
}

} // namespace mica::rt::jinja
