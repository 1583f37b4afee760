#include "backends/runtime/text/jinja/Lexer.h"
#include "backends/runtime/text/base/Utf8.h"
#include "backends/runtime/text/jinja/Characters.h"

#include <algorithm>
#include <charconv>

namespace mica::rt::jinja {

namespace {
using tokenizer::charLength;

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) { return c == '_' || ((c | 32) >= 'a' && (c | 32) <= 'z'); }
bool isNameChar(char c) { return isNameStart(c) || isDigit(c); }

/// Converts newlines to \n, and removes one at the end.
std::string normalized(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    bool carriage = source[i] == '\r';
    if (carriage && i + 1 < source.size() && source[i + 1] == '\n')
      ++i;
    text += carriage ? '\n' : source[i];
  }
  if (text.ends_with('\n'))
    text.pop_back();
  return text;
}

class Lexer {
public:
  explicit Lexer(std::string_view source) : source(normalized(source)) {}

  std::vector<Token> run() {
    while (readData()) {
    }
    push(Token::End, "");
    return std::move(tokens);
  }

private:
  std::string_view rest() const { return std::string_view(source).substr(at); }
  bool startsWith(std::string_view text) const { return rest().starts_with(text); }

  void push(Token::Kind kind, std::string_view text) {
    tokens.push_back({kind, std::string(text), {}, line});
  }

  void advance(size_t count) {
    line += static_cast<int>(std::count(source.begin() + static_cast<std::ptrdiff_t>(at),
                                        source.begin() + static_cast<std::ptrdiff_t>(at + count),
                                        '\n'));
    at += count;
    lineStart = at > 0 && source[at - 1] == '\n';
  }

  [[noreturn]] void bad(std::string message) const { throw Failure{std::move(message), line}; }

  void skipSpace() {
    while (at < source.size() && isSpace(rest().substr(0, charLength(source[at]))))
      advance(charLength(source[at]));
  }

  /// After the end of a tag: `-` removes all white space, a block or a comment one newline.
  void endTag(char sign, bool trims) {
    if (sign == '-')
      skipSpace();
    else if (sign != '+' && trims && startsWith("\n"))
      advance(1);
  }

  /// The text up to a tag, without the white space that the tag removes.
  void pushData(std::string_view text, char sign, bool strips) {
    if (sign == '-') {
      text = stripped(text, nullptr, false, true);
    } else if (sign != '+' && strips) {
      size_t begin = text.rfind('\n') + 1;
      if ((begin > 0 || lineStart) && stripped(text.substr(begin), nullptr, true, false).empty())
        text = text.substr(0, begin);
    }
    if (!text.empty())
      push(Token::Data, text);
  }

  /// The next `{{`, `{%` or `{#`; npos: none.
  size_t findTag() const {
    for (size_t i = source.find('{', at); i != source.npos; i = source.find('{', i + 1))
      if (i + 1 < source.size() && std::string_view("{%#").find(source[i + 1]) != source.npos)
        return i;
    return source.npos;
  }

  /// Reads text and the tag after it; false at the end of the template.
  bool readData() {
    size_t tag = findTag();
    std::string_view text = rest().substr(0, tag == source.npos ? tag : tag - at);
    if (tag == source.npos) {
      if (!text.empty())
        push(Token::Data, text);
      advance(text.size());
      return false;
    }
    char kind = source[tag + 1];
    char sign = tag + 2 < source.size() ? source[tag + 2] : ' ';
    bool print = kind == '{';
    sign = sign == '-' || sign == '+' ? sign : ' ';
    pushData(text, sign, !print);
    advance(tag - at);
    if (kind == '%' && readRaw())
      return true;
    advance(sign == ' ' ? 2 : 3);
    if (kind == '#')
      readComment();
    else
      readTag(print);
    return true;
  }

  void readComment() {
    size_t end = rest().find("#}");
    if (end == source.npos)
      bad("the comment does not end with #}");
    char sign = end > 0 ? rest()[end - 1] : ' ';
    advance(end + 2);
    endTag(sign, true);
  }

  /// `{% raw %}`, from its beginning; false: another tag.
  bool readRaw() {
    size_t begin = at;
    int beginLine = line;
    auto matches = [&](std::string_view word) {
      advance(source.size() > at + 2 && (source[at + 2] == '-' || source[at + 2] == '+') ? 3 : 2);
      skipSpace();
      if (!startsWith(word))
        return false;
      advance(word.size());
      skipSpace();
      return startsWith("%}") || startsWith("-%}") || (word == "endraw" && startsWith("+%}"));
    };
    auto end = [&](bool trims) {
      char sign = source[at] == '%' ? ' ' : source[at];
      advance(sign == ' ' ? 2 : 3);
      endTag(sign, trims);
    };
    if (!matches("raw")) {
      at = begin;
      line = beginLine;
      return false;
    }
    end(false);
    for (size_t from = at;;) {
      size_t tag = source.find("{%", from);
      if (tag == source.npos)
        throw Failure{"the tag 'raw' does not end with 'endraw'", beginLine};
      size_t place = at;
      int placeLine = line;
      bool start = lineStart;
      at = tag;
      char sign = tag + 2 < source.size() ? source[tag + 2] : ' ';
      bool found = matches("endraw");
      size_t tagEnd = at;
      at = place;
      line = placeLine;
      lineStart = start;
      from = tag + 2;
      if (!found)
        continue;
      pushData(rest().substr(0, tag - at), sign, true);
      advance(tagEnd - at);
      end(true);
      return true;
    }
  }

  /// The tokens of a tag, up to its end.
  void readTag(bool print) {
    push(print ? Token::PrintBegin : Token::BlockBegin, "");
    std::string_view close = print ? "}}" : "%}";
    std::string open;
    for (;;) {
      skipSpace();
      if (at >= source.size())
        bad(print ? "the expression does not end with }}" : "the tag does not end with %}");
      char sign = source[at];
      bool trims = sign == '-' || (sign == '+' && !print);
      if (open.empty() && rest().substr(trims ? 1 : 0).starts_with(close)) {
        push(print ? Token::PrintEnd : Token::BlockEnd, "");
        advance(trims ? 3 : 2);
        endTag(trims ? sign : ' ', !print);
        return;
      }
      readWord(open);
    }
  }

  void readWord(std::string &open) {
    char c = source[at];
    if (isDigit(c))
      return readNumber();
    if (isNameStart(c)) {
      size_t size = 1;
      while (at + size < source.size() && isNameChar(source[at + size]))
        ++size;
      push(Token::Name, rest().substr(0, size));
      return advance(size);
    }
    if (c == '\'' || c == '"')
      return readString(c);
    for (std::string_view word :
         {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
          "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"})
      if (startsWith(word)) {
        trackBrackets(word[0], open);
        push(Token::Operator, word);
        return advance(word.size());
      }
    bad("the character '" + std::string(rest().substr(0, charLength(c))) + "' is unexpected");
  }

  void trackBrackets(char c, std::string &open) const {
    if (size_t kind = std::string_view("([{").find(c); kind != std::string_view::npos)
      open += ")]}"[kind];
    if (c != ')' && c != ']' && c != '}')
      return;
    if (open.empty() || open.back() != c)
      bad(std::string("the bracket '") + c + "' closes nothing");
    open.pop_back();
  }

  void readString(char quote) {
    size_t size = 1;
    while (at + size < source.size() && source[at + size] != quote)
      size += source[at + size] == '\\' ? 2 : 1;
    if (at + size >= source.size())
      bad("the string does not end");
    int begin = line;
    std::string value;
    try {
      value = unescaped(rest().substr(1, size - 1));
    } catch (const Failure &failure) {
      bad(failure.message);
    }
    advance(size + 1);
    tokens.push_back({Token::String, std::move(value), {}, begin});
  }

  /// A sequence of digits, with single underscores between them.
  size_t digits(size_t from, bool (*isOne)(char)) const {
    size_t end = from;
    while (end < source.size() &&
           (isOne(source[end]) || (end > from && source[end] == '_' && end + 1 < source.size() &&
                                   isOne(source[end + 1]))))
      ++end;
    return end;
  }

  void pushNumber(size_t end, Value number) {
    push(Token::Number, rest().substr(0, end - at));
    tokens.back().number = std::move(number);
    advance(end - at);
  }

  void readNumber() {
    size_t whole = digits(at, isDigit), end = whole;
    bool afterDot = at > 0 && source[at - 1] == '.';
    if (!afterDot) {
      if (end + 1 < source.size() && source[end] == '.' && isDigit(source[end + 1]))
        end = digits(end + 1, isDigit);
      size_t mark = end;
      if (mark < source.size() && (source[mark] | 32) == 'e') {
        mark += mark + 1 < source.size() && (source[mark + 1] == '+' || source[mark + 1] == '-')
                    ? 2
                    : 1;
        if (mark < source.size() && isDigit(source[mark]))
          end = digits(mark, isDigit);
      }
    }
    if (end > whole)
      return pushNumber(end, floatOf(end));
    if (source[at] != '0')
      return pushNumber(whole, integerOf(at, whole, 10));
    char base = at + 1 < source.size() ? static_cast<char>(source[at + 1] | 32) : ' ';
    int radix = base == 'x' ? 16 : base == 'o' ? 8 : base == 'b' ? 2 : 0;
    if (radix) {
      auto *isOne = radix == 16
                        ? +[](char c) { return isDigit(c) || ((c | 32) >= 'a' && (c | 32) <= 'f'); }
                    : radix == 8 ? +[](char c) { return c >= '0' && c <= '7'; }
                                 : +[](char c) { return c == '0' || c == '1'; };
      if (size_t last = digits(at + 2, isOne); last > at + 2)
        return pushNumber(last, integerOf(at + 2, last, radix));
    }
    pushNumber(digits(at, [](char c) { return c == '0'; }), Value(int64_t(0)));
  }

  std::string withoutMarks(size_t from, size_t end) const {
    std::string text = source.substr(from, end - from);
    text.erase(std::remove(text.begin(), text.end(), '_'), text.end());
    return text;
  }

  Value integerOf(size_t from, size_t end, int radix) const {
    std::string text = withoutMarks(from, end);
    int64_t value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value, radix).ec != std::errc())
      bad("the number " + text + " is beyond 64 bits");
    return value;
  }

  Value floatOf(size_t end) const {
    std::string text = withoutMarks(at, end);
    double value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
      bad("the number " + text + " is beyond the range of floats");
    return value;
  }

  std::string source;
  size_t at = 0;
  int line = 1;
  bool lineStart = true;
  std::vector<Token> tokens;
};

/// `count` digits in base 8 or 16.
uint32_t codeOf(std::string_view text, size_t at, size_t count, int radix) {
  uint32_t value = 0;
  std::string_view digits = text.substr(std::min(at, text.size()), count);
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, radix);
  if (digits.size() < count || error != std::errc() || end != digits.data() + count)
    fail("the string has a truncated escape");
  return value;
}

bool isOctal(char c) { return c >= '0' && c <= '7'; }
} // namespace

std::string unescaped(std::string_view literal) {
  static constexpr std::string_view letters = "\\'\"abfnrtv", meanings = "\\'\"\a\b\f\n\r\t\v";
  std::string text;
  for (size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\' || i + 1 == literal.size()) {
      text += literal[i];
      continue;
    }
    char c = literal[++i];
    if (size_t place = letters.find(c); place != letters.npos) {
      text += meanings[place];
    } else if (c == 'x' || c == 'u' || c == 'U') {
      size_t count = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      uint32_t code = codeOf(literal, i + 1, count, 16);
      if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        fail("escapes of surrogates and of values above U+10FFFF are not supported");
      tokenizer::appendChar(text, code);
      i += count;
    } else if (isOctal(c)) {
      size_t count = 1;
      while (count < 3 && i + count < literal.size() && isOctal(literal[i + count]))
        ++count;
      tokenizer::appendChar(text, codeOf(literal, i, count, 8));
      i += count - 1;
    } else if (c == 'N') {
      fail("the string names a character with \\N, which is not supported");
    } else if (c != '\n') {
      text += {'\\', c};
    }
  }
  return text;
}

std::vector<Token> tokenize(std::string_view source) { return Lexer(source).run(); }

} // namespace mica::rt::jinja
