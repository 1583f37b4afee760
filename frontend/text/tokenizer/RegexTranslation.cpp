#include "frontend/text/tokenizer/RegexTranslation.h"

#include "frontend/text/tokenizer/UnicodeTables.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

namespace mica {
namespace {

// Unicode's White_Space and Oniguruma's word characters; PCRE2's own \s also has U+180E, its \w
// lacks marks.
constexpr llvm::StringLiteral space = R"(\t-\r\x{85}\p{Z})";
constexpr llvm::StringLiteral word = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

llvm::Error refuse(const llvm::Twine &what) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), what);
}

class Translator {
public:
  explicit Translator(llvm::StringRef pattern) : rest(pattern) {}

  llvm::Expected<std::string> run() {
    while (!rest.empty())
      if (auto error = step())
        return std::move(error);
    if (inClass)
      return refuse("an unfinished character class");
    return std::move(out);
  }

private:
  llvm::Error step() {
    if (rest[0] == '\\')
      return escape();
    if (inClass)
      return insideClass();
    if (rest.starts_with("(?")) {
      // Oniguruma's m is PCRE2's s, and its other options differ as well; only i means the same.
      llvm::StringRef options =
          rest.drop_front(2).take_while([](char c) { return llvm::isAlpha(c) || c == '-'; });
      char next = rest.drop_front(2 + options.size()).empty() ? ' ' : rest[2 + options.size()];
      if (!options.empty() && (next == ':' || next == ')') && options != "i" && options != "-i")
        return refuse("the options \"" + options + "\" of a group are not supported");
    }
    if (rest[0] == '[') {
      inClass = true;
      take(rest.starts_with("[^") ? 2 : 1);
      if (rest.starts_with("]"))
        take(1); // literal where it comes first
      return llvm::Error::success();
    }
    take(1);
    return llvm::Error::success();
  }

  llvm::Error insideClass() {
    if (rest.starts_with("[:")) {
      size_t end = rest.find(":]");
      if (end == llvm::StringRef::npos)
        return refuse("an unfinished character class");
      take(end + 2);
      return llvm::Error::success();
    }
    if (rest[0] == '[' || rest.starts_with("&&"))
      return refuse("nested character classes are not supported");
    if (rest[0] == ']')
      inClass = false;
    take(1);
    return llvm::Error::success();
  }

  llvm::Error escape() {
    if (rest.size() < 2)
      return refuse("a backslash at the end");
    if (rest.consume_front("\\p{N}")) {
      out += (inClass ? "\\p{N}" : "[\\p{N}") + numbersBesidePcre2() + (inClass ? "" : "]");
      return llvm::Error::success();
    }
    char letter = rest[1];
    bool known = true;
    switch (letter) {
    case 's':
      out += inClass ? space.str() : ("[" + space + "]").str();
      break;
    case 'w':
      out += inClass ? word.str() : ("[" + word + "]").str();
      break;
    case 'S':
    case 'W':
      if (inClass)
        return refuse(llvm::Twine("\\") + llvm::Twine(letter) +
                      " in a character class is not supported");
      out += ("[^" + (letter == 'S' ? llvm::StringRef(space) : llvm::StringRef(word)) + "]").str();
      break;
    case 'v': // Oniguruma: only U+000B
      out += "\\x0B";
      break;
    default:
      known = false;
    }
    if (known) {
      rest = rest.drop_front(2);
      return llvm::Error::success();
    }
    if (llvm::isAlnum(letter) && !llvm::StringRef("pPdDrntfxAzbB").contains(letter))
      return refuse(llvm::Twine("the escape \\") + llvm::Twine(letter) + " is not supported");
    take(2);
    return llvm::Error::success();
  }

  void take(size_t count) {
    out += rest.take_front(count);
    rest = rest.drop_front(count);
  }

  llvm::StringRef rest;
  std::string out;
  bool inClass = false;
};

} // namespace

llvm::Expected<std::string> translateRegex(llvm::StringRef pattern) {
  return Translator(pattern).run();
}

std::string escapeRegex(llvm::StringRef text) {
  std::string out;
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x80 && !llvm::isAlnum(c) && c != '\n')
      out += '\\';
    out += c;
  }
  return out;
}

} // namespace mica
