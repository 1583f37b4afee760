// The words of a template, with white space controlled as transformers' environment does:
// trim_blocks, lstrip_blocks, one newline at the end dropped.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_LEXER_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_LEXER_H

#include "backends/runtime/text/jinja/Value.h"

namespace mica::rt::jinja {

struct Token {
  enum Kind {
    Data,
    BlockBegin,
    BlockEnd,
    PrintBegin,
    PrintEnd,
    Name,
    String,
    Number,
    Operator,
    End
  };
  Kind kind = End;
  std::string text; ///< A name, an operator, data or a string's value.
  Value number;
  int line = 1;

  bool is(std::string_view operation) const { return kind == Operator && text == operation; }
  bool isName(std::string_view name) const { return kind == Name && text == name; }
};

/// Errors: tags, comments and strings that do not end, characters that mean nothing.
std::vector<Token> tokenize(std::string_view source);

/// What Python's string literals mean by their backslashes. Errors: names of characters, half
/// characters, codes that are cut.
std::string unescaped(std::string_view literal);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_LEXER_H
