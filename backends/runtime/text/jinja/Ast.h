// The syntax tree of a template. Nodes are implemented in Evaluate.cpp and Execute.cpp.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_AST_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_AST_H

#include "backends/runtime/text/jinja/Value.h"

namespace mica::rt::jinja {

struct Expression {
  int line = 0;
  int depth = 1; ///< Of the tree below.
  virtual ~Expression() = default;
  virtual Value evaluate(Interpreter &interpreter) const = 0;
};
using Expr = std::unique_ptr<Expression>;

/// How a statement ends.
enum class Flow { Next, Break, Continue };

struct Statement {
  int line = 0;
  virtual ~Statement() = default;
  virtual Flow execute(Interpreter &interpreter) const = 0;
};
struct Block {
  std::vector<std::unique_ptr<Statement>> statements;
  /// Names that are undefined until the block sets them, even if the conversation defines them.
  std::vector<std::string> hidden;
};

struct ArgumentList {
  std::vector<Expr> positional;
  std::vector<std::pair<std::string, Expr>> named;
  Expr star, doubleStar; ///< *list, **dict
  Arguments evaluate(Interpreter &interpreter) const;
};

using Filter = Value (*)(Interpreter &, const Value &, const Arguments &);
using Test = bool (*)(Interpreter &, const Value &, const Arguments &);
/// Null: no filter or test has this name.
Filter findFilter(std::string_view name);
Test findTest(std::string_view name);

#define MICA_EXPRESSION Value evaluate(Interpreter &interpreter) const override

struct ConstantExpression final : Expression {
  Value value;
  explicit ConstantExpression(Value value) : value(std::move(value)) {}
  MICA_EXPRESSION;
};
struct NameExpression final : Expression {
  std::string name;
  explicit NameExpression(std::string name) : name(std::move(name)) {}
  MICA_EXPRESSION;
};
struct ListExpression final : Expression {
  bool tuple = false;
  std::vector<Expr> items;
  MICA_EXPRESSION;
};
struct DictExpression final : Expression {
  std::vector<std::pair<Expr, Expr>> entries;
  MICA_EXPRESSION;
};
/// object.name
struct AttributeExpression final : Expression {
  Expr object;
  std::string name;
  MICA_EXPRESSION;
};
/// object[index]
struct ItemExpression final : Expression {
  Expr object, index;
  MICA_EXPRESSION;
};
/// object[start:stop:step], each of which may be null
struct SliceExpression final : Expression {
  Expr object, start, stop, step;
  MICA_EXPRESSION;
};
struct CallExpression final : Expression {
  Expr callee;
  ArgumentList arguments;
  /// `caller`: the body of a call block.
  Value call(Interpreter &interpreter, const Value *caller) const;
  MICA_EXPRESSION;
};
struct FilterExpression final : Expression {
  Expr input; ///< Null: the text of the block that is filtered.
  std::string name;
  Filter filter = nullptr;
  ArgumentList arguments;
  Value apply(Interpreter &interpreter, const Value &value) const;
  MICA_EXPRESSION;
};
struct TestExpression final : Expression {
  Expr input;
  std::string name;
  Test test = nullptr;
  bool negated = false;
  ArgumentList arguments;
  MICA_EXPRESSION;
};
struct UnaryExpression final : Expression {
  std::string operation; ///< "not", "-", "+"
  Expr operand;
  MICA_EXPRESSION;
};
struct BinaryExpression final : Expression {
  std::string operation; ///< "and", "or", "+", "-", "*", "/", "//", "%", "**"
  Expr left, right;
  MICA_EXPRESSION;
};
/// a ~ b ~ c
struct ConcatExpression final : Expression {
  std::vector<Expr> parts;
  MICA_EXPRESSION;
};
/// a < b == c, a in b
struct CompareExpression final : Expression {
  Expr first;
  std::vector<std::pair<std::string, Expr>> others; ///< "==", ..., "in", "not in"
  MICA_EXPRESSION;
};
struct ConditionalExpression final : Expression {
  Expr condition, then, otherwise; ///< otherwise may be null
  MICA_EXPRESSION;
};
#undef MICA_EXPRESSION

/// The target of `set` and `for`.
struct Target {
  std::string name;
  std::string attribute;     ///< of a namespace; empty: a variable
  std::vector<Target> items; ///< a tuple; name is empty then
  bool tuple = false;
};

struct Parameter {
  std::string name;
  Expr fallback; ///< may be null
};

#define MICA_STATEMENT Flow execute(Interpreter &interpreter) const override

struct DataStatement final : Statement {
  std::string text;
  MICA_STATEMENT;
};
struct PrintStatement final : Statement {
  Expr value;
  MICA_STATEMENT;
};
struct IfStatement final : Statement {
  std::vector<std::pair<Expr, Block>> branches;
  Block otherwise;
  MICA_STATEMENT;
};
struct ForStatement final : Statement {
  Target target;
  Expr items, condition; ///< condition may be null
  bool recursive = false;
  Block body, otherwise;
  /// Runs the loop over `items` at this recursion depth.
  Flow run(Interpreter &interpreter, const Value &items, int64_t depth) const;
  MICA_STATEMENT;
};
struct SetStatement final : Statement {
  Target target;
  Expr value;
  MICA_STATEMENT;
};
struct SetBlockStatement final : Statement {
  Target target;
  std::vector<Expr> filters;
  Block body;
  MICA_STATEMENT;
};
struct FilterBlockStatement final : Statement {
  std::vector<Expr> filters;
  Block body;
  MICA_STATEMENT;
};
/// The parameters and the body of a macro or a call block.
struct Procedure {
  std::string name;
  std::vector<Parameter> parameters;
  Block body;
  bool usesCaller = false, usesVarargs = false, usesKwargs = false;
};
struct MacroStatement final : Statement {
  Procedure procedure;
  MICA_STATEMENT;
};
struct CallBlockStatement final : Statement {
  Procedure procedure;
  Expr call; ///< a CallExpression
  MICA_STATEMENT;
};
struct WithStatement final : Statement {
  std::vector<std::pair<Target, Expr>> bindings;
  Block body;
  MICA_STATEMENT;
};
struct FlowStatement final : Statement {
  Flow flow = Flow::Break;
  MICA_STATEMENT;
};
#undef MICA_STATEMENT

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_AST_H
