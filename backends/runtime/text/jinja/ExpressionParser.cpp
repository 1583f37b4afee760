#include "backends/runtime/text/jinja/ExpressionParser.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
/// Counts the nesting of the parser's functions.
class Nested {
public:
  Nested(int &depth, const TokenStream &stream) : depth(depth) {
    if (++depth > maxExpressionDepth) {
      --depth;
      stream.fail("the expression is nested more than " + std::to_string(maxExpressionDepth) +
                  " levels deep");
    }
  }
  ~Nested() { --depth; }

private:
  int &depth;
};
} // namespace

template <typename T>
Expr ExpressionParser::made(std::unique_ptr<T> node, int line,
                            std::initializer_list<const Expression *> children) {
  node->line = line;
  for (const Expression *child : children)
    if (child)
      node->depth = std::max(node->depth, child->depth + 1);
  if (node->depth > maxExpressionDepth)
    stream.fail("the expression is nested more than " + std::to_string(maxExpressionDepth) +
                " levels deep");
  return node;
}

Expr ExpressionParser::expression(bool conditional) {
  Nested nested(depth, stream);
  if (!conditional)
    return either();
  int line = stream.current().line;
  Expr value = either();
  while (stream.skipName("if")) {
    auto node = std::make_unique<ConditionalExpression>();
    node->then = std::move(value);
    node->condition = either();
    if (stream.skipName("else"))
      node->otherwise = expression();
    const Expression *parts[] = {node->then.get(), node->condition.get(), node->otherwise.get()};
    value = made(std::move(node), line, {parts[0], parts[1], parts[2]});
  }
  return value;
}

Expr ExpressionParser::binary(std::string operation, Expr left, Expr right, int line) {
  auto node = std::make_unique<BinaryExpression>();
  const Expression *a = left.get(), *b = right.get();
  node->operation = std::move(operation);
  node->left = std::move(left);
  node->right = std::move(right);
  return made(std::move(node), line, {a, b});
}

Expr ExpressionParser::either() {
  int line = stream.current().line;
  Expr left = both();
  while (stream.skipName("or"))
    left = binary("or", std::move(left), both(), line);
  return left;
}

Expr ExpressionParser::both() {
  int line = stream.current().line;
  Expr left = negation();
  while (stream.skipName("and"))
    left = binary("and", std::move(left), negation(), line);
  return left;
}

Expr ExpressionParser::negation() {
  if (!stream.current().isName("not"))
    return comparison();
  Nested nested(depth, stream);
  int line = stream.take().line;
  auto node = std::make_unique<UnaryExpression>();
  node->operation = "not";
  node->operand = negation();
  const Expression *operand = node->operand.get();
  return made(std::move(node), line, {operand});
}

Expr ExpressionParser::comparison() {
  int line = stream.current().line;
  Expr first = sum();
  auto node = std::make_unique<CompareExpression>();
  int deepest = first->depth;
  for (;;) {
    std::string operation;
    const Token &token = stream.current();
    for (std::string_view known : {"==", "!=", "<", "<=", ">", ">="})
      if (token.is(known))
        operation = known;
    if (token.isName("in"))
      operation = "in";
    else if (token.isName("not") && stream.next().isName("in"))
      operation = "not in";
    if (operation.empty())
      break;
    stream.take();
    if (operation == "not in")
      stream.take();
    node->others.emplace_back(std::move(operation), sum());
    deepest = std::max(deepest, node->others.back().second->depth);
  }
  if (node->others.empty())
    return first;
  node->first = std::move(first);
  node->depth = deepest + 1;
  return made(std::move(node), line, {});
}

Expr ExpressionParser::sum() {
  int line = stream.current().line;
  Expr left = concatenation();
  while (stream.current().is("+") || stream.current().is("-")) {
    std::string operation = stream.take().text;
    left = binary(std::move(operation), std::move(left), concatenation(), line);
  }
  return left;
}

Expr ExpressionParser::concatenation() {
  int line = stream.current().line;
  Expr first = product();
  if (!stream.current().is("~"))
    return first;
  auto node = std::make_unique<ConcatExpression>();
  node->depth = first->depth + 1;
  node->parts.push_back(std::move(first));
  while (stream.skip("~")) {
    node->parts.push_back(product());
    node->depth = std::max(node->depth, node->parts.back()->depth + 1);
  }
  return made(std::move(node), line, {});
}

Expr ExpressionParser::product() {
  int line = stream.current().line;
  Expr left = power();
  auto isProduct = [&] {
    const Token &token = stream.current();
    return token.is("*") || token.is("/") || token.is("//") || token.is("%");
  };
  while (isProduct()) {
    std::string operation = stream.take().text;
    left = binary(std::move(operation), std::move(left), power(), line);
  }
  return left;
}

Expr ExpressionParser::power() {
  int line = stream.current().line;
  Expr left = unary();
  while (stream.skip("**"))
    left = binary("**", std::move(left), unary(), line);
  return left;
}

Expr ExpressionParser::unary(bool withFilters) {
  Nested nested(depth, stream);
  Expr node;
  if (stream.current().is("-") || stream.current().is("+")) {
    Token sign = stream.take();
    auto signedNode = std::make_unique<UnaryExpression>();
    signedNode->operation = sign.text;
    signedNode->operand = unary(false);
    const Expression *operand = signedNode->operand.get();
    node = made(std::move(signedNode), sign.line, {operand});
  } else {
    node = primary();
  }
  node = postfix(std::move(node));
  return withFilters ? filtered(std::move(node)) : std::move(node);
}

void ExpressionParser::noteSpecial(const std::string &name) {
  for (Procedure *procedure : procedures) {
    procedure->usesCaller |= name == "caller";
    procedure->usesVarargs |= name == "varargs";
    procedure->usesKwargs |= name == "kwargs";
  }
}

Expr ExpressionParser::name() {
  Token token = stream.take();
  const std::string &text = token.text;
  if (text == "true" || text == "True" || text == "false" || text == "False")
    return made(std::make_unique<ConstantExpression>(text == "true" || text == "True"), token.line,
                {});
  if (text == "none" || text == "None")
    return made(std::make_unique<ConstantExpression>(Value()), token.line, {});
  noteSpecial(text);
  names.load(text);
  return made(std::make_unique<NameExpression>(text), token.line, {});
}

Expr ExpressionParser::primary() {
  int line = stream.current().line;
  switch (stream.current().kind) {
  case Token::Name:
    return name();
  case Token::Number:
    return made(std::make_unique<ConstantExpression>(stream.take().number), line, {});
  case Token::String: {
    std::string text;
    while (stream.current().kind == Token::String)
      text += stream.take().text;
    return made(std::make_unique<ConstantExpression>(Value::own(text)), line, {});
  }
  default:
    break;
  }
  if (stream.current().is("("))
    return parenthesized();
  if (stream.current().is("["))
    return list();
  if (stream.current().is("{"))
    return dict();
  stream.unexpected("an expression");
}

Expr ExpressionParser::parenthesized() {
  Nested nested(depth, stream);
  stream.expect("(");
  Expr value = tupleUntil(true, {}, true);
  stream.expect(")");
  return value;
}

Expr ExpressionParser::tuple(bool conditional, std::string_view end) {
  return tupleUntil(conditional, end, false);
}

Expr ExpressionParser::tupleUntil(bool conditional, std::string_view end, bool parentheses) {
  int line = stream.current().line;
  auto node = std::make_unique<ListExpression>();
  node->tuple = true;
  bool comma = false;
  auto atEnd = [&] {
    const Token &token = stream.current();
    return token.kind == Token::PrintEnd || token.kind == Token::BlockEnd || token.is(")") ||
           (!end.empty() && token.isName(end));
  };
  for (;;) {
    if (!node->items.empty())
      stream.expect(",");
    if (atEnd())
      break;
    node->items.push_back(expression(conditional));
    node->depth = std::max(node->depth, node->items.back()->depth + 1);
    if (!stream.current().is(","))
      break;
    comma = true;
  }
  if (!comma && !node->items.empty())
    return std::move(node->items.front());
  if (!comma && !parentheses)
    stream.unexpected("an expression");
  return made(std::move(node), line, {});
}

Expr ExpressionParser::list() {
  Nested nested(depth, stream);
  int line = stream.take().line;
  auto node = std::make_unique<ListExpression>();
  while (!stream.current().is("]")) {
    if (!node->items.empty()) {
      stream.expect(",");
      if (stream.current().is("]"))
        break;
    }
    node->items.push_back(expression());
    node->depth = std::max(node->depth, node->items.back()->depth + 1);
  }
  stream.expect("]");
  return made(std::move(node), line, {});
}

Expr ExpressionParser::dict() {
  Nested nested(depth, stream);
  int line = stream.take().line;
  auto node = std::make_unique<DictExpression>();
  while (!stream.current().is("}")) {
    if (!node->entries.empty()) {
      stream.expect(",");
      if (stream.current().is("}"))
        break;
    }
    Expr key = expression();
    stream.expect(":");
    Expr value = expression();
    node->depth = std::max({node->depth, key->depth + 1, value->depth + 1});
    node->entries.emplace_back(std::move(key), std::move(value));
  }
  stream.expect("}");
  return made(std::move(node), line, {});
}

Expr ExpressionParser::postfix(Expr node) {
  for (;;) {
    if (stream.current().is(".") || stream.current().is("["))
      node = subscript(std::move(node));
    else if (stream.current().is("("))
      node = call(std::move(node));
    else
      return node;
  }
}

Expr ExpressionParser::filtered(Expr node) {
  for (;;) {
    if (stream.skip("|"))
      node = filter(std::move(node));
    else if (stream.current().isName("is"))
      node = test(std::move(node));
    else if (stream.current().is("("))
      node = call(std::move(node));
    else
      return node;
  }
}

std::vector<Expr> ExpressionParser::filters(bool started) {
  std::vector<Expr> chain;
  while (started || stream.skip("|")) {
    started = false;
    chain.push_back(filter(nullptr));
  }
  return chain;
}

/// Names of filters and tests of other environments may contain dots.
std::string ExpressionParser::dottedName() {
  std::string name = stream.takeName();
  while (stream.skip("."))
    name += "." + stream.takeName();
  return name;
}

Expr ExpressionParser::filter(Expr input) {
  int line = stream.current().line;
  auto node = std::make_unique<FilterExpression>();
  node->name = dottedName();
  node->filter = findFilter(node->name);
  if (!node->filter)
    throw Failure{"the filter '" + node->name + "' is not supported", line};
  if (stream.current().is("("))
    arguments(node->arguments);
  const Expression *child = input.get();
  node->input = std::move(input);
  return made(std::move(node), line, {child});
}

Expr ExpressionParser::test(Expr input) {
  int line = stream.take().line;
  auto node = std::make_unique<TestExpression>();
  node->negated = stream.skipName("not");
  node->name = dottedName();
  node->test = findTest(node->name);
  if (!node->test)
    throw Failure{"the test '" + node->name + "' is not supported", line};
  const Token &token = stream.current();
  bool begins = token.kind == Token::Name || token.kind == Token::String ||
                token.kind == Token::Number || token.is("[") || token.is("{");
  if (token.is("(")) {
    arguments(node->arguments);
  } else if (begins && !token.isName("else") && !token.isName("or") && !token.isName("and")) {
    if (token.isName("is"))
      stream.fail("tests cannot be chained with 'is'");
    node->arguments.positional.push_back(postfix(primary()));
  }
  const Expression *child = input.get();
  node->input = std::move(input);
  return made(std::move(node), line, {child});
}

Expr ExpressionParser::call(Expr callee) {
  int line = stream.current().line;
  auto node = std::make_unique<CallExpression>();
  arguments(node->arguments);
  const Expression *child = callee.get();
  node->callee = std::move(callee);
  return made(std::move(node), line, {child});
}

void ExpressionParser::argument(ArgumentList &list) {
  if (list.doubleStar)
    stream.fail("nothing can follow an argument with **");
  if (stream.skip("**")) {
    list.doubleStar = expression();
  } else if (stream.current().is("*")) {
    if (list.star)
      stream.fail("only one argument can have *");
    stream.take();
    list.star = expression();
  } else if (stream.current().kind == Token::Name && stream.next().is("=")) {
    std::string name = stream.take().text;
    stream.take();
    for (const auto &other : list.named)
      if (other.first == name)
        stream.fail("the argument '" + name + "' is given twice");
    list.named.emplace_back(std::move(name), expression());
  } else {
    if (list.star || !list.named.empty())
      stream.fail("an argument without a name cannot follow one with a name or *");
    list.positional.push_back(expression());
  }
}

void ExpressionParser::arguments(ArgumentList &list) {
  Nested nested(depth, stream);
  stream.expect("(");
  for (bool first = true; !stream.current().is(")"); first = false) {
    if (!first) {
      stream.expect(",");
      if (stream.current().is(")"))
        break;
    }
    argument(list);
  }
  stream.expect(")");
}

/// None or several, which form a tuple.
Expr ExpressionParser::indices(Expr first) {
  int line = stream.current().line;
  auto node = std::make_unique<ListExpression>();
  node->tuple = true;
  if (first)
    node->items.push_back(std::move(first));
  while (stream.skip(",")) {
    if (stream.current().is(":"))
      stream.fail("a slice beside other indices is not supported");
    node->items.push_back(expression());
  }
  for (const Expr &item : node->items)
    node->depth = std::max(node->depth, item->depth + 1);
  return made(std::move(node), line, {});
}

Expr ExpressionParser::subscript(Expr object) {
  Nested nested(depth, stream);
  int line = stream.current().line;
  const Expression *child = object.get();
  if (stream.skip(".")) {
    if (stream.current().kind == Token::Number && stream.current().number.integer()) {
      auto node = std::make_unique<ItemExpression>();
      node->object = std::move(object);
      node->index = primary();
      return made(std::move(node), line, {child});
    }
    auto node = std::make_unique<AttributeExpression>();
    node->object = std::move(object);
    node->name = stream.takeName();
    return made(std::move(node), line, {child});
  }
  stream.expect("[");
  auto isEnd = [&] { return stream.current().is(":") || stream.current().is("]"); };
  Expr start = isEnd() ? nullptr : expression();
  if (!stream.current().is(":")) {
    auto node = std::make_unique<ItemExpression>();
    node->object = std::move(object);
    node->index = start && stream.current().is("]") ? std::move(start) : indices(std::move(start));
    stream.expect("]");
    const Expression *index = node->index.get();
    return made(std::move(node), line, {child, index});
  }
  auto node = std::make_unique<SliceExpression>();
  node->object = std::move(object);
  node->start = std::move(start);
  stream.expect(":");
  if (!isEnd())
    node->stop = expression();
  if (stream.skip(":") && !isEnd())
    node->step = expression();
  stream.expect("]");
  const Expression *parts[] = {node->start.get(), node->stop.get(), node->step.get()};
  return made(std::move(node), line, {child, parts[0], parts[1], parts[2]});
}

} // namespace mica::rt::jinja
