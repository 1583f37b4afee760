// The position in the tokens of a template, shared by the parsers of statements and expressions.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_TOKENSTREAM_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_TOKENSTREAM_H

#include "backends/runtime/text/jinja/Lexer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace mica::rt::jinja {

class TokenStream {
public:
  explicit TokenStream(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  const Token &current() const { return tokens[at]; }
  const Token &next() const { return tokens[std::min(at + 1, tokens.size() - 1)]; }
  Token take();
  bool skip(std::string_view operation);
  bool skipName(std::string_view name);
  void expect(std::string_view operation);
  void expectName(std::string_view name);
  void expect(Token::Kind kind);
  std::string takeName();
  [[noreturn]] void fail(std::string message) const;
  /// The current token is unexpected.
  [[noreturn]] void unexpected(std::string_view wanted) const;

private:
  std::vector<Token> tokens;
  size_t at = 0;
};

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_TOKENSTREAM_H
