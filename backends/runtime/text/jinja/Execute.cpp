// Executes statements.
#include "backends/runtime/text/jinja/Interpreter.h"
#include "backends/runtime/text/jinja/Print.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
/// A macro, or the body of a call block, with the variables around it.
class Macro final : public Object {
public:
  Macro(const Procedure &procedure, std::shared_ptr<Scope> scope)
      : procedure(procedure), scope(std::move(scope)) {}
  std::string_view typeName() const override { return "Macro"; }
  bool callable() const override { return true; }
  Value call(Interpreter &interpreter, Arguments &arguments) override;
  std::optional<Value> attribute(Interpreter &interpreter, std::string_view name) override {
    if (name == "name")
      return Value::own(procedure.name);
    for (std::string_view other : {"arguments", "catch_kwargs", "catch_varargs", "caller"})
      if (name == other)
        fail("the attribute '" + std::string(name) + "' of a macro is not supported");
    return std::nullopt;
  }

private:
  [[noreturn]] void refuse(const std::string &why) const {
    fail("the macro '" + procedure.name + "' " + why);
  }
  void bind(Interpreter &interpreter, Arguments &arguments) const;
  void bindRest(Interpreter &interpreter, Arguments &arguments) const;

  const Procedure &procedure;
  std::shared_ptr<Scope> scope;
};

void Macro::bindRest(Interpreter &interpreter, Arguments &arguments) const {
  size_t count = procedure.parameters.size();
  auto &named = arguments.named;
  auto caller = std::find_if(named.begin(), named.end(),
                             [](const auto &argument) { return argument.first == "caller"; });
  Value given = Undefined{"no caller was given"};
  if (procedure.usesCaller && caller != named.end()) {
    given = std::move(caller->second);
    named.erase(caller);
  }
  if (procedure.usesCaller)
    interpreter.scope->set(interpreter, "caller", given);
  if (procedure.usesKwargs) {
    std::vector<std::pair<Value, Value>> entries;
    entries.reserve(named.size());
    for (auto &[name, value] : named)
      entries.emplace_back(Value::own(name), std::move(value));
    interpreter.scope->set(interpreter, "kwargs", makeMapping(interpreter, std::move(entries)));
  } else if (!named.empty()) {
    refuse("has no parameter '" + named.front().first + "'");
  }
  Values rest;
  for (size_t i = count; i < arguments.positional.size(); ++i)
    rest.push_back(std::move(arguments.positional[i]));
  if (procedure.usesVarargs)
    interpreter.scope->set(interpreter, "varargs", makeTuple(std::move(rest)));
  else if (!rest.empty())
    refuse("takes not more than " + std::to_string(count) + " arguments");
}

void Macro::bind(Interpreter &interpreter, Arguments &arguments) const {
  std::vector<std::optional<Value>> values;
  for (size_t i = 0; i < procedure.parameters.size(); ++i) {
    const std::string &name = procedure.parameters[i].name;
    auto &named = arguments.named;
    auto found = std::find_if(named.begin(), named.end(),
                              [&](const auto &argument) { return argument.first == name; });
    std::optional<Value> value;
    if (i < arguments.positional.size())
      value = arguments.positional[i];
    if (found != named.end() && value)
      refuse("has two values for '" + name + "'");
    if (found != named.end()) {
      value = std::move(found->second);
      named.erase(found);
    }
    values.push_back(std::move(value));
  }
  bindRest(interpreter, arguments);
  for (size_t i = 0; i < values.size(); ++i) {
    const Parameter &parameter = procedure.parameters[i];
    if (!values[i] && parameter.fallback)
      values[i] = interpreter.evaluate(*parameter.fallback);
    if (!values[i])
      values[i] = Undefined{"parameter '" + parameter.name + "' was not provided"};
    interpreter.scope->set(interpreter, parameter.name, *values[i]);
  }
}

Value Macro::call(Interpreter &interpreter, Arguments &arguments) {
  Interpreter::Inner inner(interpreter, scope);
  bind(interpreter, arguments);
  TrackedText text;
  interpreter.capture(interpreter.scope, text, [&] { return interpreter.execute(procedure.body); });
  return Value(std::move(text));
}

Value makeMacro(Interpreter &interpreter, const Procedure &procedure) {
  interpreter.keep(interpreter.scope);
  return std::shared_ptr<Object>(std::make_shared<Macro>(procedure, interpreter.scope));
}

/// The items of a loop, optionally filtered by a condition, and the variable `loop`.
class Loop final : public Object, public std::enable_shared_from_this<Loop> {
public:
  Loop(Interpreter &interpreter, const ForStatement &statement, const Value &items, int64_t depth)
      : interpreter(interpreter), statement(statement), source(interpreter.items(items)),
        depth(depth), around(interpreter.scope) {}

  std::string_view typeName() const override { return "LoopContext"; }
  bool callable() const override { return statement.recursive; }
  Value call(Interpreter &interpreter, Arguments &arguments) override;
  std::optional<Value> attribute(Interpreter &interpreter, std::string_view name) override;

  /// Advances to the next item; false: none.
  bool advance() {
    if (!pull(passed + 1))
      return false;
    ++passed;
    return true;
  }
  const Value &current() const { return items[passed - 1]; }
  const std::shared_ptr<Scope> &scope() const { return around; }
  bool changed(Values values);

private:
  /// Whether there are at least `count` items.
  bool pull(size_t count) {
    for (; items.size() < count && next < source.size(); ++next)
      if (passes(source[next]))
        items.push_back(source[next]);
    return items.size() >= count;
  }
  bool passes(const Value &item) {
    if (!statement.condition)
      return true;
    Interpreter::Inner inner(interpreter, around);
    interpreter.assign(statement.target, item);
    return truth(interpreter.evaluate(*statement.condition));
  }
  int64_t length() {
    pull(source.size() + 1);
    return static_cast<int64_t>(items.size());
  }

  Interpreter &interpreter;
  const ForStatement &statement;
  Values source, items;
  size_t next = 0, passed = 0;
  int64_t depth;
  std::shared_ptr<Scope> around;
  std::optional<Values> last;
};

bool Loop::changed(Values values) {
  auto same = [this](const Values &a, const Values &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [this](const auto &x, const auto &y) { return equal(interpreter, x, y); });
  };
  if (last && same(*last, values))
    return false;
  last = std::move(values);
  return true;
}

/// loop.cycle and loop.changed
class LoopFunction final : public Object {
public:
  LoopFunction(std::shared_ptr<Loop> loop, int64_t index, bool cycles)
      : loop(std::move(loop)), index(index), cycles(cycles) {}
  std::string_view typeName() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Interpreter &interpreter, Arguments &arguments) override {
    Values &values = arguments.positional;
    if (!arguments.named.empty() || (cycles && values.empty()))
      fail("loop.cycle and loop.changed take values without names");
    if (cycles)
      return values[static_cast<size_t>(index) % values.size()];
    return loop->changed(std::move(values));
  }

private:
  std::shared_ptr<Loop> loop;
  int64_t index;
  bool cycles;
};

Value Loop::call(Interpreter &interpreter, Arguments &arguments) {
  if (!statement.recursive)
    fail("the loop is called, but is not marked as recursive");
  if (arguments.positional.size() != 1 || !arguments.named.empty())
    fail("a recursive loop is called with one value");
  TrackedText text;
  interpreter.capture(
      around, text, [&] { return statement.run(interpreter, arguments.positional[0], depth + 1); });
  return Value(std::move(text));
}

std::optional<Value> Loop::attribute(Interpreter &, std::string_view name) {
  auto index = static_cast<int64_t>(passed) - 1;
  if (name == "index")
    return Value(index + 1);
  if (name == "index0")
    return Value(index);
  if (name == "first")
    return Value(index == 0);
  if (name == "last")
    return Value(!pull(passed + 1));
  if (name == "length")
    return Value(length());
  if (name == "revindex")
    return Value(length() - index);
  if (name == "revindex0")
    return Value(length() - index - 1);
  if (name == "depth")
    return Value(depth + 1);
  if (name == "depth0")
    return Value(depth);
  if (name == "previtem")
    return index > 0 ? items[passed - 2] : Value(Undefined{"there is no previous item"});
  if (name == "nextitem")
    return pull(passed + 1) ? items[passed] : Value(Undefined{"there is no next item"});
  if (name == "cycle" || name == "changed")
    return Value(std::shared_ptr<Object>(
        std::make_shared<LoopFunction>(shared_from_this(), index, name == "cycle")));
  return std::nullopt;
}

/// The chain of filters applied to the text of a block.
Value filtered(Interpreter &interpreter, const std::vector<Expr> &filters, TrackedText text) {
  Value value = interpreter.text(std::move(text));
  for (const Expr &filter : filters)
    value = static_cast<const FilterExpression &>(*filter).apply(interpreter, value);
  return value;
}
} // namespace

Flow DataStatement::execute(Interpreter &interpreter) const {
  interpreter.write(text);
  return Flow::Next;
}

Flow PrintStatement::execute(Interpreter &interpreter) const {
  interpreter.write(*toText(interpreter, interpreter.evaluate(*value)));
  return Flow::Next;
}

Flow IfStatement::execute(Interpreter &interpreter) const {
  for (const auto &[condition, body] : branches)
    if (truth(interpreter.evaluate(*condition)))
      return interpreter.execute(body);
  return interpreter.execute(otherwise);
}

Flow ForStatement::run(Interpreter &interpreter, const Value &values, int64_t depth) const {
  auto loop = std::make_shared<Loop>(interpreter, *this, values, depth);
  // As in Jinja2, iterations ended by `break` or `continue` do not count for `else`.
  bool whole = false;
  while (loop->advance()) {
    Interpreter::Inner inner(interpreter, loop->scope());
    interpreter.scope->set(interpreter, "loop", std::shared_ptr<Object>(loop));
    interpreter.assign(target, loop->current());
    Flow flow = interpreter.execute(body);
    whole |= flow == Flow::Next;
    if (flow == Flow::Break)
      break;
  }
  if (whole || otherwise.statements.empty())
    return Flow::Next;
  Interpreter::Inner inner(interpreter, loop->scope());
  return interpreter.execute(otherwise);
}

Flow ForStatement::execute(Interpreter &interpreter) const {
  return run(interpreter, interpreter.evaluate(*items), 0);
}

Flow SetStatement::execute(Interpreter &interpreter) const {
  interpreter.assign(target, interpreter.evaluate(*value));
  return Flow::Next;
}

Flow SetBlockStatement::execute(Interpreter &interpreter) const {
  TrackedText text;
  if (Flow flow = interpreter.capture(body, text); flow != Flow::Next)
    return flow;
  interpreter.assign(target, filtered(interpreter, filters, std::move(text)));
  return Flow::Next;
}

Flow FilterBlockStatement::execute(Interpreter &interpreter) const {
  TrackedText text;
  if (Flow flow = interpreter.capture(body, text); flow != Flow::Next)
    return flow;
  interpreter.write(*toText(interpreter, filtered(interpreter, filters, std::move(text))));
  return Flow::Next;
}

Flow MacroStatement::execute(Interpreter &interpreter) const {
  interpreter.scope->set(interpreter, procedure.name, makeMacro(interpreter, procedure));
  return Flow::Next;
}

Flow CallBlockStatement::execute(Interpreter &interpreter) const {
  Value caller = makeMacro(interpreter, procedure);
  Value result = static_cast<const CallExpression &>(*call).call(interpreter, &caller);
  interpreter.write(*toText(interpreter, result));
  return Flow::Next;
}

Flow WithStatement::execute(Interpreter &interpreter) const {
  Values values;
  for (const auto &binding : bindings)
    values.push_back(interpreter.evaluate(*binding.second));
  Interpreter::Inner inner(interpreter);
  for (size_t i = 0; i < bindings.size(); ++i)
    interpreter.assign(bindings[i].first, values[i]);
  return interpreter.execute(body);
}

Flow FlowStatement::execute(Interpreter &) const { return flow; }

} // namespace mica::rt::jinja
