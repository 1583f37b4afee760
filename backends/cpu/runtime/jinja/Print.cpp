// Values as text: str(), repr() and json.dumps().
#include "backends/cpu/runtime/jinja/Characters.h"
#include "backends/cpu/runtime/jinja/StableSort.h"
#include "backends/cpu/runtime/jinja/Value.h"
#include "backends/cpu/runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace mica::rt::jinja {

namespace {
std::string hex(const char *format, uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string quoted(const std::string &text) {
  bool single = text.find('\'') != text.npos, twice = text.find('"') != text.npos;
  char quote = single && !twice ? '"' : '\'';
  std::string result(1, quote);
  for (std::string_view character : charsOf(text)) {
    uint32_t c = tokenizer::decodeChar(character);
    if (c == '\\' || c == static_cast<uint32_t>(quote))
      result += '\\';
    if (c == '\n')
      result += "\\n";
    else if (c == '\r')
      result += "\\r";
    else if (c == '\t')
      result += "\\t";
    else if (isPrintable(character))
      result += character;
    else
      result += hex(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c);
  }
  return result + quote;
}

std::string joined(const Values &items) {
  std::string text;
  for (const Value &item : items)
    text += (text.empty() ? "" : ", ") + toRepr(item);
  return text;
}

std::string reprOf(const Sequence &sequence) {
  switch (sequence.kind) {
  case Sequence::List:
    return "[" + joined(sequence.items) + "]";
  case Sequence::Tuple:
    return "(" + joined(sequence.items) + (sequence.items.size() == 1 ? ",)" : ")");
  case Sequence::Range:
    fail("a range has no text here, make a list of it with |list");
  case Sequence::View:
    fail("a view of a dict has no text here, make a list of it with |list");
  case Sequence::Generator:
    break;
  }
  fail("a generator has no text here, make a list of it with |list");
}

std::string reprOf(const Mapping &mapping) {
  std::string text = "{";
  for (const auto &[key, value] : mapping.entries)
    text += (text.size() > 1 ? ", " : "") + toRepr(key) + ": " + toRepr(value);
  return text + "}";
}

/// A float's shortest digits, with an exponent where Python writes one.
std::string shortest(double value) {
  char buffer[64];
  auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific)
          .ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  size_t mark = text.find('e');
  int exponent = std::atoi(std::string(text.substr(mark + 1)).c_str());
  std::string digits(text.substr(0, mark));
  if (exponent < -4 || exponent >= 16)
    return digits + "e" + (exponent < 0 ? "-" : "+") + (std::abs(exponent) < 10 ? "0" : "") +
           std::to_string(std::abs(exponent));
  digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
  if (exponent < 0)
    return "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole)
    return digits + std::string(whole - digits.size(), '0') + ".0";
  return digits.substr(0, whole) + "." + digits.substr(whole);
}

class JsonWriter {
public:
  explicit JsonWriter(const JsonStyle &style) : style(style) {}

  void write(const Value &value) {
    if (value.isNone())
      out += "null";
    else if (auto *flag = value.boolean())
      out += *flag ? "true" : "false";
    else if (auto integer = value.integer())
      out += std::to_string(*integer);
    else if (auto *real = value.real())
      out += number(*real);
    else if (const std::string *text = value.text())
      writeText(*text);
    else if (const Mapping *mapping = value.mapping())
      writeMapping(*mapping);
    else if (const Sequence *sequence = value.sequence();
             sequence && sequence->kind <= Sequence::Tuple)
      writeSequence(*sequence);
    else
      fail("an object of type " + typeName(value) + " is not JSON serializable");
  }

  std::string out;

private:
  static std::string number(double value) {
    if (std::isnan(value))
      return "NaN";
    return std::isinf(value) ? value < 0 ? "-Infinity" : "Infinity" : toRepr(value);
  }

  void writeText(const std::string &text) {
    out += '"';
    for (std::string_view character : charsOf(text))
      writeChar(character, tokenizer::decodeChar(character));
    out += '"';
  }

  void writeChar(std::string_view character, uint32_t c) {
    static constexpr std::string_view plain = "\"\\\n\r\t\f\b", escaped = "\"\\nrtfb";
    if (size_t place = c < 0x80 ? plain.find(static_cast<char>(c)) : plain.npos;
        place != plain.npos)
      out += {'\\', escaped[place]};
    else if (c < 0x20 || (style.ascii && c >= 0x7F && c < 0x10000 && c != 0x7F))
      out += hex("\\u%04x", c);
    else if (style.ascii && c >= 0x10000)
      out += hex("\\u%04x", 0xD800 + ((c - 0x10000) >> 10)) +
             hex("\\u%04x", 0xDC00 + ((c - 0x10000) & 0x3FF));
    else
      out += character;
  }

  /// A key as text.
  std::string keyOf(const Value &key) {
    if (const std::string *text = key.text())
      return *text;
    if (key.isNone())
      return "null";
    if (auto *flag = key.boolean())
      return *flag ? "true" : "false";
    if (auto integer = key.integer())
      return std::to_string(*integer);
    if (auto *real = key.real())
      return number(*real);
    fail("a key of type " + typeName(key) + " is not JSON serializable");
  }

  void startItem(bool first) {
    if (!first)
      out += style.itemSeparator;
    startLine();
  }

  void startLine() {
    if (!style.indent)
      return;
    out += '\n';
    for (int i = 0; i < depth; ++i)
      out += *style.indent;
  }

  void writeSequence(const Sequence &sequence) {
    out += '[';
    ++depth;
    bool first = true;
    for (const Value &item : sequence.items) {
      startItem(std::exchange(first, false));
      write(item);
    }
    --depth;
    if (!sequence.items.empty())
      startLine();
    out += ']';
  }

  void writeMapping(const Mapping &mapping) {
    std::vector<const std::pair<Value, Value> *> entries;
    for (const auto &entry : mapping.entries)
      entries.push_back(&entry);
    if (style.sortKeys)
      stableSort(entries, [](const auto *a, const auto *b) { return less(a->first, b->first); });
    out += '{';
    ++depth;
    bool first = true;
    for (const auto *entry : entries) {
      startItem(std::exchange(first, false));
      writeText(keyOf(entry->first));
      out += style.keySeparator;
      write(entry->second);
    }
    --depth;
    if (!entries.empty())
      startLine();
    out += '}';
  }

  const JsonStyle &style;
  int depth = 0;
};
} // namespace

std::string toRepr(double value) {
  if (std::isnan(value))
    return "nan";
  std::string sign = std::signbit(value) ? "-" : "";
  return sign + (std::isinf(value) ? "inf" : value == 0 ? "0.0" : shortest(value));
}

std::string toText(const Value &value) {
  const std::string *text = value.text();
  return text ? *text : value.isUndefined() ? "" : toRepr(value);
}

Value escape(const Value &value) {
  if (value.escaped())
    return value;
  std::string result;
  for (char c : toText(value))
    result += c == '&'    ? "&amp;"
              : c == '<'  ? "&lt;"
              : c == '>'  ? "&gt;"
              : c == '\'' ? "&#39;"
              : c == '"'  ? "&#34;"
                          : std::string(1, c);
  return Value::markup(std::move(result));
}

std::string toRepr(const Value &value) {
  if (value.isUndefined())
    return "Undefined";
  if (value.isNone())
    return "None";
  if (auto *flag = value.boolean())
    return *flag ? "True" : "False";
  if (auto integer = value.integer())
    return std::to_string(*integer);
  if (auto *real = value.real())
    return toRepr(*real);
  if (const std::string *text = value.text())
    return value.escaped() ? "Markup(" + quoted(*text) + ")" : quoted(*text);
  if (const Sequence *sequence = value.sequence())
    return reprOf(*sequence);
  if (const Mapping *mapping = value.mapping())
    return reprOf(*mapping);
  fail("an object of type " + typeName(value) + " has no text here");
}

std::string toJson(const Value &value, const JsonStyle &style) {
  JsonWriter writer(style);
  writer.write(value);
  return std::move(writer.out);
}

} // namespace mica::rt::jinja
