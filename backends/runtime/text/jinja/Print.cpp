// Converts values to text: str(), repr() and json.dumps().
#include "backends/runtime/text/jinja/Print.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/StableSort.h"

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

/// Shared by both writers: the text and its cost.
class Writer {
public:
  TrackedText out;

protected:
  explicit Writer(Budget &budget) : budget(budget) {}

  void put(std::string_view piece, bool untrusted = false) {
    budget.reserve(piece.size());
    out.append(piece, untrusted);
  }
  void put(const TrackedText &text) {
    budget.reserve(text.size());
    out.append(text);
  }
  /// Appends a part of `text` verbatim.
  void copy(const TrackedText &text, std::string_view piece) { out.appendPiece(text, piece); }

  Budget &budget;
};

/// repr() of any value.
class ReprWriter final : public Writer {
public:
  explicit ReprWriter(Budget &budget) : Writer(budget) {}

  void write(const Value &value) {
    budget.spend(1);
    if (value.isUndefined())
      put("Undefined");
    else if (value.isNone())
      put("None");
    else if (auto *flag = value.boolean())
      put(*flag ? "True" : "False");
    else if (auto integer = value.integer())
      put(std::to_string(*integer));
    else if (auto *real = value.real())
      put(toRepr(*real));
    else if (Text text = value.tracked())
      writeText(*text, value.escaped());
    else if (const Sequence *sequence = value.sequence())
      writeSequence(*sequence);
    else if (const Mapping *mapping = value.mapping())
      writeMapping(*mapping);
    else
      fail("printing an object of type " + typeName(value) + " is not supported");
  }

private:
  void writeText(const TrackedText &text, bool escaped) {
    budget.reserve(text.size());
    budget.spend(text.size()); // unescaped characters are determined by character classes
    bool single = text.bytes.find('\'') != std::string::npos;
    bool twice = text.bytes.find('"') != std::string::npos;
    char quote = single && !twice ? '"' : '\'';
    put(escaped ? "Markup(" : "");
    put(std::string_view(&quote, 1));
    for (std::string_view character : charsOf(text.bytes))
      writeChar(text, character, quote);
    put(std::string_view(&quote, 1));
    put(escaped ? ")" : "");
  }

  void writeChar(const TrackedText &text, std::string_view character, char quote) {
    uint32_t c = tokenizer::decodeChar(character);
    auto at = static_cast<size_t>(character.data() - text.bytes.data());
    bool untrusted = text.untrusted.overlaps(at, at + character.size());
    if (c == '\\' || c == static_cast<uint32_t>(quote))
      put("\\", untrusted);
    if (c == '\n')
      put("\\n", untrusted);
    else if (c == '\r')
      put("\\r", untrusted);
    else if (c == '\t')
      put("\\t", untrusted);
    else if (isPrintable(character))
      copy(text, character);
    else
      put(hex(c < 0x100 ? "\\x%02x" : c < 0x10000 ? "\\u%04x" : "\\U%08x", c), untrusted);
  }

  void writeSequence(const Sequence &sequence) {
    switch (sequence.kind) {
    case Sequence::List:
    case Sequence::Tuple:
      break;
    case Sequence::Range:
      fail("printing a range is not supported; use |list");
    case Sequence::View:
      fail("printing a view of a dict is not supported; use |list");
    case Sequence::Generator:
      fail("printing a generator is not supported; use |list");
    }
    bool list = sequence.kind == Sequence::List;
    put(list ? "[" : "(");
    for (const Value &item : sequence.items) {
      put(&item == sequence.items.data() ? "" : ", ");
      write(item);
    }
    put(list ? "]" : sequence.items.size() == 1 ? ",)" : ")");
  }

  void writeMapping(const Mapping &mapping) {
    put("{");
    for (const auto &entry : mapping.entries) {
      put(&entry == mapping.entries.data() ? "" : ", ");
      write(entry.first);
      put(": ");
      write(entry.second);
    }
    put("}");
  }
};

/// The shortest digits of a float, with an exponent where Python writes one.
std::string shortest(double value) {
  char buffer[64];
  auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific)
          .ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  size_t mark = text.find('e');
  int exponent = 0;
  const char *sign = text.data() + mark + 1; // from_chars reads no plus sign
  std::from_chars(*sign == '+' ? sign + 1 : sign, end, exponent);
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

class JsonWriter final : public Writer {
public:
  JsonWriter(Budget &budget, const JsonStyle &style) : Writer(budget), style(style) {}

  void write(const Value &value) {
    budget.spend(1);
    if (value.isNone())
      put("null");
    else if (auto *flag = value.boolean())
      put(*flag ? "true" : "false");
    else if (auto integer = value.integer())
      put(std::to_string(*integer));
    else if (auto *real = value.real())
      put(number(*real));
    else if (Text text = value.tracked())
      writeText(*text);
    else if (const Mapping *mapping = value.mapping())
      writeMapping(*mapping);
    else if (const Sequence *sequence = value.sequence();
             sequence && sequence->kind <= Sequence::Tuple)
      writeSequence(*sequence);
    else
      fail("an object of type " + typeName(value) + " is not JSON serializable");
  }

private:
  static std::string number(double value) {
    if (std::isnan(value))
      return "NaN";
    return std::isinf(value) ? value < 0 ? "-Infinity" : "Infinity" : toRepr(value);
  }

  void writeText(const TrackedText &text) {
    budget.reserve(text.size());
    budget.spend(text.size() / 8);
    put("\"");
    for (std::string_view character : charsOf(text.bytes))
      writeChar(text, character);
    put("\"");
  }

  void writeChar(const TrackedText &text, std::string_view character) {
    static constexpr std::string_view plain = "\"\\\n\r\t\f\b", escaped = "\"\\nrtfb";
    uint32_t c = tokenizer::decodeChar(character);
    size_t place = c < 0x80 ? plain.find(static_cast<char>(c)) : plain.npos;
    bool numbered = c < 0x20 || (style.ascii && c > 0x7F);
    if (place == plain.npos && !numbered)
      return copy(text, character);
    auto at = static_cast<size_t>(character.data() - text.bytes.data());
    bool untrusted = text.untrusted.overlaps(at, at + character.size());
    if (place != plain.npos)
      put(std::string({'\\', escaped[place]}), untrusted);
    else if (c < 0x10000)
      put(hex("\\u%04x", c), untrusted);
    else
      put(hex("\\u%04x", 0xD800 + ((c - 0x10000) >> 10)) +
              hex("\\u%04x", 0xDC00 + ((c - 0x10000) & 0x3FF)),
          untrusted);
  }

  void writeKey(const Value &key) {
    if (Text text = key.tracked())
      return writeText(*text);
    if (!key.isNone() && !key.number())
      fail("a key of type " + typeName(key) + " is not JSON serializable");
    put("\"");
    write(key);
    put("\"");
  }

  void startItem(bool first) {
    if (!first)
      put(style.itemSeparator);
    startLine();
  }

  void startLine() {
    if (!style.indent)
      return;
    put("\n");
    for (int i = 0; i < depth; ++i)
      put(*style.indent);
  }

  void writeSequence(const Sequence &sequence) {
    put("[");
    ++depth;
    bool first = true;
    for (const Value &item : sequence.items) {
      startItem(std::exchange(first, false));
      write(item);
    }
    --depth;
    if (!sequence.items.empty())
      startLine();
    put("]");
  }

  void writeMapping(const Mapping &mapping) {
    budget.reserveValues(mapping.entries.size());
    std::vector<const std::pair<Value, Value> *> entries;
    entries.reserve(mapping.entries.size());
    for (const auto &entry : mapping.entries)
      entries.push_back(&entry);
    if (style.sortKeys)
      stableSort(entries,
                 [this](const auto *a, const auto *b) { return less(budget, a->first, b->first); });
    put("{");
    ++depth;
    bool first = true;
    for (const auto *entry : entries) {
      startItem(std::exchange(first, false));
      writeKey(entry->first);
      put(style.keySeparator);
      write(entry->second);
    }
    --depth;
    if (!entries.empty())
      startLine();
    put("}");
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

Text toText(Budget &budget, const Value &value) {
  if (Text text = value.tracked())
    return text;
  return std::make_shared<const TrackedText>(value.isUndefined() ? TrackedText()
                                                                 : toRepr(budget, value));
}

Value escape(Budget &budget, const Value &value) {
  if (value.escaped())
    return value;
  Text text = toText(budget, value);
  budget.spend(text->size() / 8);
  TrackedText result;
  for (size_t at = 0; at < text->size(); ++at) {
    char c = text->bytes[at];
    std::string_view entity = c == '&'    ? "&amp;"
                              : c == '<'  ? "&lt;"
                              : c == '>'  ? "&gt;"
                              : c == '\'' ? "&#39;"
                              : c == '"'  ? "&#34;"
                                          : "";
    budget.reserve(std::max<size_t>(entity.size(), 1));
    if (entity.empty())
      result.append(*text, at, at + 1);
    else
      result.append(entity, text->untrusted.overlaps(at, at + 1));
  }
  return Value::markup(std::move(result));
}

TrackedText toRepr(Budget &budget, const Value &value) {
  ReprWriter writer(budget);
  writer.write(value);
  return std::move(writer.out);
}

TrackedText toJson(Budget &budget, const Value &value, const JsonStyle &style) {
  JsonWriter writer(budget, style);
  writer.write(value);
  return std::move(writer.out);
}

} // namespace mica::rt::jinja
