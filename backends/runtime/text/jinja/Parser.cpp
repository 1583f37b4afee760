#include "backends/runtime/text/jinja/Parser.h"
#include "backends/runtime/text/jinja/ExpressionParser.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
using Names = std::initializer_list<std::string_view>;

class Parser {
public:
  explicit Parser(std::string_view source) : stream(tokenize(source)), expressions(stream) {}

  Block run() {
    Block block = body({});
    if (stream.current().kind != Token::End)
      stream.unexpected("text or a tag");
    names.resolve(block);
    return block;
  }

private:
  /// Text and tags up to a tag that begins with one of `ends`, which becomes the current token.
  Block body(Names ends);
  /// The rest of a tag and its body up to the end tag, whose name is consumed.
  std::string bodyUntil(Block &block, Names ends);
  /// The same for a block with its own scope, in which the names of `given` are defined.
  std::string scopeUntil(Block &block, Names ends, const Target *given = nullptr);
  std::unique_ptr<Statement> statement();
  std::unique_ptr<Statement> ifStatement();
  std::unique_ptr<Statement> forStatement();
  std::unique_ptr<Statement> setStatement();
  std::unique_ptr<Statement> macroStatement();
  std::unique_ptr<Statement> callStatement();
  std::unique_ptr<Statement> filterStatement();
  std::unique_ptr<Statement> withStatement();
  std::unique_ptr<Statement> generationStatement();
  std::unique_ptr<Statement> flowStatement(Flow flow);
  std::unique_ptr<Statement> print();
  Target target();
  Target targets(std::string_view end);
  void parameters(Procedure &procedure);
  void procedureStart(Procedure &procedure);
  void procedureBody(Procedure &procedure, std::string_view end);

  TokenStream stream;
  ExpressionParser expressions;
  NameUses &names = expressions.names;
  int depth = 0;
  int loops = 0;    ///< Loops that a `break` can leave.
  int allLoops = 0; ///< Loops around, those around a macro as well.
};

std::string quotedList(Names names) {
  std::string text;
  for (std::string_view name : names)
    text += (text.empty() ? "'" : " or '") + std::string(name) + "'";
  return text;
}

Block Parser::body(Names ends) {
  Block block;
  for (;;) {
    Token token = stream.current();
    if (token.kind == Token::End)
      return block;
    stream.take();
    if (token.kind == Token::Data) {
      auto data = std::make_unique<DataStatement>();
      data->text = std::move(token.text);
      block.statements.push_back(std::move(data));
    } else if (token.kind == Token::PrintBegin) {
      block.statements.push_back(print());
      stream.expect(Token::PrintEnd);
    } else {
      if (std::any_of(ends.begin(), ends.end(),
                      [&](std::string_view end) { return stream.current().isName(end); }))
        return block;
      block.statements.push_back(statement());
      stream.expect(Token::BlockEnd);
    }
    block.statements.back()->line = token.line;
  }
}

std::string Parser::bodyUntil(Block &block, Names ends) {
  int line = stream.current().line;
  stream.skip(":");
  stream.expect(Token::BlockEnd);
  block = body(ends);
  if (stream.current().kind == Token::End)
    throw Failure{"the tag does not end with " + quotedList(ends), line};
  return stream.take().text;
}

std::string Parser::scopeUntil(Block &block, Names ends, const Target *given) {
  names.enter(&block);
  if (given)
    names.parameters(*given);
  std::string end = bodyUntil(block, ends);
  names.leave();
  return end;
}

std::unique_ptr<Statement> Parser::print() {
  auto node = std::make_unique<PrintStatement>();
  node->line = stream.current().line;
  node->value = expressions.tuple();
  return node;
}

std::unique_ptr<Statement> Parser::statement() {
  if (stream.current().kind != Token::Name)
    stream.unexpected("the name of a tag");
  if (++depth > maxBlockDepth)
    stream.fail("tags are nested more than " + std::to_string(maxBlockDepth) + " levels deep");
  using Rule = std::unique_ptr<Statement> (Parser::*)();
  static constexpr std::pair<std::string_view, Rule> rules[] = {
      {"if", &Parser::ifStatement},     {"for", &Parser::forStatement},
      {"set", &Parser::setStatement},   {"macro", &Parser::macroStatement},
      {"call", &Parser::callStatement}, {"filter", &Parser::filterStatement},
      {"with", &Parser::withStatement}, {"generation", &Parser::generationStatement},
  };
  std::unique_ptr<Statement> node;
  Token tag = stream.current();
  for (const auto &[name, rule] : rules)
    if (tag.text == name) {
      stream.take();
      node = (this->*rule)();
    }
  if (!node && stream.skipName("print"))
    node = print();
  else if (!node && stream.skipName("break"))
    node = flowStatement(Flow::Break);
  else if (!node && stream.skipName("continue"))
    node = flowStatement(Flow::Continue);
  if (!node)
    stream.fail("the tag '" + tag.text + "' is not supported here");
  --depth;
  return node;
}

std::unique_ptr<Statement> Parser::flowStatement(Flow flow) {
  if (loops == 0)
    stream.fail(std::string(flow == Flow::Break ? "'break'" : "'continue'") +
                " is outside of a loop");
  auto node = std::make_unique<FlowStatement>();
  node->flow = flow;
  return node;
}

std::unique_ptr<Statement> Parser::ifStatement() {
  auto node = std::make_unique<IfStatement>();
  std::string end = "elif";
  while (end == "elif") {
    // Jinja2 treats the first block, all `elif` blocks, and `else` as three branches.
    bool isFirst = node->branches.empty();
    Expr condition = expressions.tuple(false);
    Block block;
    names.open();
    end = bodyUntil(block, {"elif", "else", "endif"});
    names.divide();
    if (!isFirst) {
      names.divide();
      names.close();
    }
    node->branches.emplace_back(std::move(condition), std::move(block));
  }
  names.divide();
  if (end == "else")
    bodyUntil(node->otherwise, {"endif"});
  names.close();
  return node;
}

/// A variable, possibly in parentheses, or an attribute of a namespace.
Target Parser::target() {
  Target result;
  if (stream.skip("(")) {
    if (++depth > maxBlockDepth)
      stream.fail("a target is nested more than " + std::to_string(maxBlockDepth) + " levels deep");
    result = targets(")");
    stream.expect(")");
    --depth;
    return result;
  }
  Token token = stream.current();
  result.name = stream.takeName();
  for (std::string_view constant : {"true", "false", "none", "True", "False", "None"})
    if (result.name == constant)
      throw Failure{"'" + result.name + "' cannot be assigned to", token.line};
  if (allLoops > 0 && result.name == "loop")
    throw Failure{"'loop' cannot be assigned to within a loop", token.line};
  return result;
}

/// The target before `in`, `=`, or the end of the tag.
Target Parser::targets(std::string_view end) {
  Target result;
  auto atEnd = [&] {
    const Token &token = stream.current();
    return token.kind == Token::BlockEnd || token.is(")") || token.is("=") || token.is("|") ||
           token.isName(end);
  };
  for (;;) {
    if (atEnd())
      break;
    result.items.push_back(target());
    if (!stream.skip(","))
      break;
    result.tuple = true;
  }
  if (result.items.empty())
    stream.unexpected("a name");
  if (result.tuple)
    return result;
  return std::move(result.items.front());
}

std::unique_ptr<Statement> Parser::forStatement() {
  auto node = std::make_unique<ForStatement>();
  ++allLoops;
  node->target = targets("in");
  stream.expectName("in");
  node->items = expressions.tuple(false, "recursive");
  if (stream.skipName("if")) {
    names.enter(nullptr);
    names.parameters(node->target);
    node->condition = expressions.expression();
    names.leave();
  }
  node->recursive = stream.skipName("recursive");
  ++loops;
  std::string end = scopeUntil(node->body, {"endfor", "else"}, &node->target);
  --loops;
  if (end == "else")
    scopeUntil(node->otherwise, {"endfor"});
  --allLoops;
  return node;
}

std::unique_ptr<Statement> Parser::setStatement() {
  Target assigned;
  if (stream.current().kind == Token::Name && stream.next().is(".")) {
    assigned.name = stream.take().text;
    stream.take();
    assigned.attribute = stream.takeName();
  } else {
    assigned = targets("=");
  }
  if (stream.skip("=")) {
    auto node = std::make_unique<SetStatement>();
    node->target = std::move(assigned);
    node->value = expressions.tuple();
    names.store(node->target);
    return node;
  }
  auto node = std::make_unique<SetBlockStatement>();
  node->target = std::move(assigned);
  names.store(node->target);
  node->filters = expressions.filters(false);
  scopeUntil(node->body, {"endset"});
  return node;
}

void Parser::parameters(Procedure &procedure) {
  stream.expect("(");
  while (!stream.current().is(")")) {
    if (!procedure.parameters.empty())
      stream.expect(",");
    Parameter parameter;
    parameter.name = target().name;
    if (parameter.name == "caller" || parameter.name.empty())
      stream.fail("a parameter is not allowed here, or is called 'caller'");
    for (const Parameter &other : procedure.parameters)
      if (other.name == parameter.name)
        stream.fail("the parameter '" + parameter.name + "' is given twice");
    names.parameter(parameter.name);
    if (stream.skip("="))
      parameter.fallback = expressions.expression();
    else if (!procedure.parameters.empty() && procedure.parameters.back().fallback)
      stream.fail("a parameter without a default follows one that has one");
    procedure.parameters.push_back(std::move(parameter));
  }
  stream.expect(")");
}

/// The optional list of parameters, and the special names of a procedure.
void Parser::procedureStart(Procedure &procedure) {
  names.enter(&procedure.body);
  for (const char *given : {"caller", "kwargs", "varargs"})
    names.parameter(given);
  if (stream.current().is("("))
    parameters(procedure);
  names.leave();
}

void Parser::procedureBody(Procedure &procedure, std::string_view end) {
  int around = std::exchange(loops, 0);
  expressions.procedures.push_back(&procedure);
  scopeUntil(procedure.body, {end});
  expressions.procedures.pop_back();
  loops = around;
}

std::unique_ptr<Statement> Parser::macroStatement() {
  auto node = std::make_unique<MacroStatement>();
  node->procedure.name = target().name;
  Target named;
  named.name = node->procedure.name;
  names.store(named);
  if (!stream.current().is("("))
    stream.unexpected("'('");
  procedureStart(node->procedure);
  procedureBody(node->procedure, "endmacro");
  return node;
}

std::unique_ptr<Statement> Parser::callStatement() {
  auto node = std::make_unique<CallBlockStatement>();
  node->procedure.name = "caller";
  procedureStart(node->procedure);
  node->call = expressions.expression();
  if (!dynamic_cast<CallExpression *>(node->call.get()))
    stream.fail("a call is expected in the tag 'call'");
  procedureBody(node->procedure, "endcall");
  return node;
}

std::unique_ptr<Statement> Parser::filterStatement() {
  auto node = std::make_unique<FilterBlockStatement>();
  node->filters = expressions.filters(true);
  scopeUntil(node->body, {"endfilter"});
  return node;
}

/// transformers' tag for text of the assistant: a new scope without other effects.
std::unique_ptr<Statement> Parser::generationStatement() {
  auto node = std::make_unique<FilterBlockStatement>();
  int around = std::exchange(loops, 0);
  scopeUntil(node->body, {"endgeneration"});
  loops = around;
  return node;
}

std::unique_ptr<Statement> Parser::withStatement() {
  auto node = std::make_unique<WithStatement>();
  while (stream.current().kind != Token::BlockEnd) {
    if (!node->bindings.empty())
      stream.expect(",");
    Target assigned = target();
    stream.expect("=");
    node->bindings.emplace_back(std::move(assigned), expressions.expression());
  }
  Target given;
  for (const auto &binding : node->bindings)
    given.items.push_back(binding.first);
  scopeUntil(node->body, {"endwith"}, &given);
  return node;
}
} // namespace

Block parse(std::string_view source) { return Parser(source).run(); }

} // namespace mica::rt::jinja
