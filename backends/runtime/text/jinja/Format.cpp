// The parts of Python's `format % values` and str.format that templates use.
#include "backends/runtime/text/jinja/Format.h"
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/Print.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace mica::rt::jinja {

namespace {
/// The maximum width and precision.
constexpr int maxWidth = 10000;

/// Reads `format`, whose values are given in order or by a dict.
class Percent {
public:
  Percent(Interpreter &interpreter, const TrackedText &format, const Value &values)
      : interpreter(interpreter), source(format), format(format.bytes) {
    mapping = values.mapping();
    const Sequence *sequence = values.sequence();
    keyed = mapping || values.isUndefined() ||
            (sequence && (sequence->kind == Sequence::List || sequence->kind == Sequence::Range));
    if (sequence && sequence->kind == Sequence::Tuple)
      items = sequence->items;
    else
      items = {values};
  }

  TrackedText run() {
    while (at < format.size()) {
      size_t mark = std::min(format.find('%', at), format.size());
      out.append(source, at, mark);
      at = mark;
      if (at < format.size())
        directive();
    }
    if (next < items.size() && !keyed)
      fail("not all arguments are converted by the format");
    return std::move(out);
  }

private:
  int number() {
    int value = 0;
    for (; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
      if (value = value * 10 + (format[at] - '0'); value > maxWidth)
        fail("the format asks for a width beyond " + std::to_string(maxWidth));
    return value;
  }

  const Value &value(const std::optional<std::string> &key) {
    if (key) {
      const Value *found = mapping ? mapping->named(interpreter, *key) : nullptr;
      if (!found)
        fail("the format names '" + *key + "', which is not given");
      return *found;
    }
    if (next >= items.size())
      fail("not enough arguments for the format string");
    return items[next++];
  }

  void directive() {
    ++at;
    std::optional<std::string> key;
    if (at < format.size() && format[at] == '(') {
      size_t end = format.find(')', at);
      if (end == format.npos)
        fail("the format has a key without its end");
      key = format.substr(at + 1, end - at - 1);
      at = end + 1;
    }
    std::string flags;
    while (at < format.size() && std::string_view("-+ 0#").find(format[at]) != std::string::npos)
      flags += format[at++];
    int width = number(), precision = -1;
    if (at < format.size() && format[at] == '.') {
      ++at;
      precision = number();
    }
    if (at >= format.size())
      fail("the format ends within a directive");
    char kind = format[at++];
    if (kind == '%')
      out.append(source, at - 1, at);
    else
      convert(kind, flags, width, precision, value(key));
  }

  void convert(char kind, const std::string &flags, int width, int precision, const Value &value) {
    bool left = flags.find('-') != flags.npos;
    TrackedText text;
    if (kind == 's' || kind == 'r') {
      text = kind == 's' ? *toText(interpreter, value) : toRepr(interpreter, value);
      if (precision >= 0)
        text = text.piece(std::string_view(text.bytes).substr(0, offsetOf(text.bytes, precision)));
    } else if (std::string_view("dixXofFeEgG").find(kind) != std::string_view::npos) {
      text.append(numberText(kind, flags, width, precision, value));
    } else {
      fail(std::string("the format %") + kind + " is not supported");
    }
    int64_t missing = width - countChars(text.bytes);
    std::string blanks(static_cast<size_t>(std::max<int64_t>(missing, 0)), ' ');
    interpreter.reserve(blanks.size() + text.size());
    out.append(left ? "" : blanks);
    out.append(text);
    out.append(left ? blanks : "");
  }

  static std::string numberText(char kind, const std::string &flags, int width, int precision,
                                const Value &value) {
    auto number = value.number();
    if (!number)
      fail(std::string("the format %") + kind + " needs a number, not " + typeName(value));
    bool whole = std::string_view("dixXo").find(kind) != std::string_view::npos;
    if (whole && (precision >= 0 || (kind != 'd' && kind != 'i')) &&
        (flags.find('#') != flags.npos || precision >= 0 || !value.integer() ||
         *value.integer() < 0))
      fail(std::string("this use of the format %") + kind + " is not supported");
    if (whole && !value.integer() && !(std::fabs(*number) < 0x1p63))
      fail("the number is beyond 64 bits");
    std::string directive = "%" + flags + std::to_string(width);
    char text[2 * maxWidth];
    if (whole) {
      auto integer = value.integer() ? *value.integer() : static_cast<int64_t>(*number);
      std::snprintf(text, sizeof text, (directive + "l" + kind).c_str(),
                    static_cast<long>(integer));
    } else {
      if (precision >= 0)
        directive += "." + std::to_string(std::min(precision, 400));
      std::snprintf(text, sizeof text, (directive + kind).c_str(), *number);
    }
    return text;
  }

  Interpreter &interpreter;
  const TrackedText &source;
  const std::string &format; ///< its bytes
  const Mapping *mapping = nullptr;
  bool keyed = false; ///< values are accessed by key, so not all have to be used
  Values items;
  size_t at = 0, next = 0;
  TrackedText out;
};
} // namespace

TrackedText formatPercent(Interpreter &interpreter, const TrackedText &format,
                          const Value &values) {
  // Each directive may write maxWidth bytes.
  interpreter.spend(format.size());
  return Percent(interpreter, format, values).run();
}

TrackedText formatBraces(Interpreter &interpreter, const TrackedText &format,
                         const Arguments &arguments) {
  TrackedText out;
  size_t next = 0;
  const std::string &bytes = format.bytes;
  for (size_t i = 0; i < bytes.size(); ++i) {
    char c = bytes[i];
    if ((c == '{' || c == '}') && i + 1 < bytes.size() && bytes[i + 1] == c) {
      out.append(format, i, i + 1);
      ++i;
    } else if (c == '}') {
      fail("the format has a single }");
    } else if (c != '{') {
      out.append(format, i, i + 1);
    } else {
      size_t end = bytes.find('}', i);
      std::string name = bytes.substr(i + 1, end - i - 1);
      if (end == bytes.npos || name.find_first_of("{.[!:") != name.npos)
        fail("this use of braces in a format is not supported");
      const Value *value = nullptr;
      interpreter.spend(arguments.named.size());
      for (const auto &[key, argument] : arguments.named)
        if (key == name)
          value = &argument;
      size_t index = 0;
      auto [last, failed] = std::from_chars(name.data(), name.data() + name.size(), index);
      bool isIndex = failed == std::errc() && last == name.data() + name.size();
      if (name.empty())
        index = next++;
      if ((name.empty() || isIndex) && index < arguments.positional.size())
        value = &arguments.positional[index];
      if (!value)
        fail("the format names '" + name + "', which is not given");
      Text piece = toText(interpreter, *value);
      interpreter.reserve(piece->size());
      out.append(*piece);
      i = end;
    }
  }
  return out;
}

} // namespace mica::rt::jinja
