// The tokens of a template, with the white space control of transformers' environment:
// trim_blocks, lstrip_blocks, one newline at the end removed.
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

/// Errors: unterminated tags, comments and strings; unexpected characters.
std::vector<Token> tokenize(std::string_view source);

/// Decodes the escapes of Python's string literals. Errors: character names, surrogates,
/// incomplete codes.
std::string unescaped(std::string_view literal);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_LEXER_H
