// Filters for HTML, URLs and human-readable sizes.
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/Print.h"
#include "backends/runtime/text/jinja/TextFilters.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace mica::rt::jinja {

namespace {
Value escapeFilter(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("escape", arguments);
  return interpreter.textLike(Value::markup({}), *escape(interpreter, value).tracked());
}

Value forceescape(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("forceescape", arguments);
  Value text(*toText(interpreter, value));
  return interpreter.textLike(Value::markup({}), *escape(interpreter, text).tracked());
}

Value safe(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("safe", arguments);
  return interpreter.textLike(Value::markup({}), *toText(interpreter, value));
}

/// Removes everything from each `begin` to the next `end`; an unterminated part is kept.
std::string without(std::string_view text, std::string_view begin, std::string_view end) {
  std::string result;
  for (;;) {
    size_t from = text.find(begin);
    size_t to = from == text.npos ? from : text.find(end, from + begin.size());
    if (to == text.npos)
      return result + std::string(text);
    result += text.substr(0, from);
    text.remove_prefix(to + end.size());
  }
}

/// The character of an entity between `&` and `;`. Errors: unknown entities.
std::string entity(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> named[] = {
      {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}};
  for (const auto &[known, text] : named)
    if (known == name)
      return std::string(text);
  bool hex = name.starts_with("#x") || name.starts_with("#X");
  std::string_view digits = name.substr(std::min<size_t>(hex ? 2 : 1, name.size()));
  uint32_t point = 0;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), point, hex ? 16 : 10);
  // HTML has special rules for others, such as control characters.
  bool plain = (point >= 0x20 && point < 0x7F) || (point >= 0xA0 && point < 0xD800) ||
               (point >= 0xE000 && point < 0xFDD0);
  if (!name.starts_with("#") || error != std::errc() || end != digits.data() + digits.size() ||
      !plain)
    fail("the entity '&" + std::string(name) + "' is not supported");
  std::string text;
  tokenizer::appendChar(text, point);
  return text;
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (;;) {
    size_t mark = text.find('&');
    result += text.substr(0, mark);
    if (mark == text.npos)
      return result;
    text.remove_prefix(mark + 1);
    size_t end = text.find_first_of("\t\n\f <&;");
    bool ended = end != text.npos && text[end] == ';';
    if (std::string_view name = text.substr(0, end); name.empty() || name == "#") {
      result += '&';
    } else {
      result += entity(ended ? name : std::string(name) + " without its end");
      text.remove_prefix(end + 1);
    }
  }
}

Value striptags(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("striptags", arguments);
  Text source = toText(interpreter, value);
  interpreter.spend(source->size());
  std::string text = without(without(source->bytes, "<!--", "-->"), "<", ">"), words;
  bool gap = false;
  for (std::string_view character : charsOf(stripped(text, nullptr, true, true))) {
    if (!isSpace(character))
      words += (gap ? " " : "") + std::string(character);
    gap = isSpace(character);
  }
  return interpreter.text(interpreter.madeOf(value, unescaped(words)));
}

/// Quotes for a path, or for a query.
std::string quoted(Interpreter &interpreter, const Value &value, bool query) {
  std::string result;
  Text text = toText(interpreter, value);
  interpreter.spend(text->size());
  interpreter.reserve(text->size());
  for (char c : text->bytes) {
    bool letter = ((c | 32) >= 'a' && (c | 32) <= 'z') || (c >= '0' && c <= '9');
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", static_cast<uint8_t>(c));
    if (letter || std::string_view("_.-~").find(c) != std::string_view::npos ||
        (c == '/' && !query))
      result += c;
    else
      result += c == ' ' && query ? "+" : code;
  }
  return result;
}

Value urlencode(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("urlencode", arguments);
  if (!value.isUndefined() && !value.sequence() && !value.mapping())
    return interpreter.text(interpreter.madeOf(value, quoted(interpreter, value, false)));
  Values pairs;
  if (const Mapping *mapping = value.mapping())
    pairs = pairsOf(interpreter, *mapping);
  else
    pairs = interpreter.items(value);
  std::string text;
  for (const Value &pair : pairs) {
    Values parts = interpreter.items(pair);
    if (parts.size() != 2)
      fail("urlencode takes a text, a dict or pairs");
    text += (text.empty() && &pair == &pairs.front() ? "" : "&") +
            quoted(interpreter, parts[0], true) + "=" + quoted(interpreter, parts[1], true);
  }
  return interpreter.text(interpreter.madeOf(value, std::move(text)));
}

Value xmlattr(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("xmlattr", arguments, {"autospace"});
  requireDefined(value);
  if (!value.mapping())
    fail("xmlattr takes a dict, not " + typeName(value));
  TrackedText text, result;
  for (const auto &[key, entry] : value.mapping()->entries) {
    interpreter.spend(1);
    if (entry.isNone() || entry.isUndefined())
      continue;
    if (!key.text() || key.text()->find_first_of(" \t\n\r\f\v/>=") != std::string::npos)
      fail("the name " + toRepr(interpreter, key).bytes +
           " of an attribute holds a character that none may have");
    text.append(text.size() == 0 ? "" : " ");
    text.append(*escape(interpreter, key).tracked());
    text.append("=\"");
    text.append(*escape(interpreter, entry).tracked());
    text.append("\"");
  }
  result.append(given.flag(0, true) && text.size() > 0 ? " " : "");
  result.append(text);
  return interpreter.text(std::move(result));
}

Value filesizeformat(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  bool binary = Parameters("filesizeformat", arguments, {"binary"}).flag(0, false);
  requireDefined(value);
  auto number = value.text() ? parseFloat(*value.text()) : value.number();
  if (!number)
    fail("filesizeformat takes a number, not " + toRepr(interpreter, value).bytes);
  double bytes = *number;
  if (bytes == 1)
    return "1 Byte";
  // All units are exactly representable.
  long double base = binary ? 1024 : 1000, unit = base;
  if (bytes < static_cast<double>(base)) {
    if (!(bytes > -0x1p63))
      fail("a whole number is beyond 64 bits");
    return Value::own(std::to_string(static_cast<int64_t>(bytes)) + " Bytes");
  }
  char prefix = 0;
  for (char next : std::string_view(binary ? "KMGTPEZY" : "kMGTPEZY")) {
    prefix = next;
    unit *= base;
    if (bytes < unit)
      break;
  }
  char text[400];
  std::snprintf(text, sizeof text, "%.1f %c%s",
                static_cast<double>(base) * bytes / static_cast<double>(unit), prefix,
                binary ? "iB" : "B");
  return std::isnan(bytes) ? Value(binary ? "nan YiB" : "nan YB") : Value(text);
}
} // namespace

FilterRows markupFilters() {
  static constexpr FilterRow rows[] = {
      {"escape", escapeFilter},     {"e", escapeFilter},
      {"forceescape", forceescape}, {"safe", safe},
      {"striptags", striptags},     {"urlencode", urlencode},
      {"xmlattr", xmlattr},         {"filesizeformat", filesizeformat},
  };
  return rows;
}

} // namespace mica::rt::jinja
