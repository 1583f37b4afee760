// Parses the expressions of a template.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_EXPRESSIONPARSER_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_EXPRESSIONPARSER_H

#include "backends/runtime/text/jinja/Ast.h"
#include "backends/runtime/text/jinja/NameUses.h"
#include "backends/runtime/text/jinja/TokenStream.h"

namespace mica::rt::jinja {

/// The maximum nesting of expressions.
inline constexpr int maxExpressionDepth = 150;

class ExpressionParser {
public:
  explicit ExpressionParser(TokenStream &stream) : stream(stream) {}

  Expr expression(bool conditional = true);
  /// An expression, or a tuple without parentheses, up to the end of the tag or the name `end`.
  Expr tuple(bool conditional = true, std::string_view end = {});
  /// `| a | b(c)`, after the first `|` if `started`; innermost first.
  std::vector<Expr> filters(bool started);
  Expr primary();

  /// Macros whose bodies are being parsed: names in them may be special.
  std::vector<Procedure *> procedures;
  NameUses names;

private:
  template <typename T>
  Expr made(std::unique_ptr<T> node, int line, std::initializer_list<const Expression *> children);
  Expr binary(std::string operation, Expr left, Expr right, int line);
  Expr either();
  Expr both();
  Expr negation();
  Expr comparison();
  Expr sum();
  Expr concatenation();
  Expr product();
  Expr power();
  Expr unary(bool filtered = true);
  Expr postfix(Expr node);
  Expr filtered(Expr node);
  Expr filter(Expr input);
  Expr test(Expr input);
  Expr call(Expr callee);
  Expr indices(Expr first);
  Expr subscript(Expr object);
  Expr list();
  Expr dict();
  Expr parenthesized();
  Expr name();
  void arguments(ArgumentList &list);
  void argument(ArgumentList &list);
  std::string dottedName();
  void noteSpecial(const std::string &name);
  Expr tupleUntil(bool conditional, std::string_view end, bool parentheses);

  TokenStream &stream;
  int depth = 0;
};

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_EXPRESSIONPARSER_H
