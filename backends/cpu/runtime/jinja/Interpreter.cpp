#include "backends/cpu/runtime/jinja/Interpreter.h"
#include "backends/cpu/runtime/jinja/Characters.h"

#include <algorithm>

namespace mica::rt::jinja {

Value *Scope::find(std::string_view name) {
  for (Scope *scope = this; scope; scope = scope->parent.get())
    for (auto &variable : scope->variables)
      if (variable.first == name)
        return &variable.second;
  return nullptr;
}

void Scope::set(std::string_view name, Value value) {
  for (auto &variable : variables)
    if (variable.first == name) {
      variable.second = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(const Value &context, const Limits &limits, const Clock &clock)
    : scope(std::make_shared<Scope>()), limits(limits), clock(clock) {
  if (const Mapping *variables = context.mapping())
    for (const auto &[name, value] : variables->entries)
      scope->set(*name.text(), value);
  scope = std::make_shared<Scope>(Scope{scope, {}});
}

Interpreter::~Interpreter() {
  for (const std::shared_ptr<Scope> &held : kept)
    held->variables.clear();
}

std::string Interpreter::render(const Block &block) {
  std::string text;
  output = &text;
  execute(block);
  return text;
}

void Interpreter::spend(uint64_t count) {
  steps += count;
  if (steps > limits.steps)
    fail("the template takes more than " + std::to_string(limits.steps) + " steps");
}

void Interpreter::reserve(uint64_t count) {
  bytes += count;
  if (count > limits.textBytes || bytes > limits.textBytes)
    fail("the template makes more than " + std::to_string(limits.textBytes) + " bytes of text");
  spend(count / 64);
}

Value Interpreter::text(std::string text) {
  reserve(text.size());
  return text;
}

Value Interpreter::textLike(const Value &source, std::string text) {
  reserve(text.size());
  return source.escaped() ? Value::markup(std::move(text)) : Value(std::move(text));
}

void Interpreter::write(std::string_view text) {
  if (output->size() + text.size() > limits.outputBytes)
    fail("the template writes more than " + std::to_string(limits.outputBytes) + " bytes");
  reserve(text.size());
  *output += text;
}

/// A node that is being run: counts it, and gives a failure that passes its line.
class Frame {
public:
  explicit Frame(Interpreter &interpreter) : interpreter(interpreter) {
    interpreter.spend(1);
    if (interpreter.depth >= interpreter.limits.depth)
      fail("the template runs more than " + std::to_string(interpreter.limits.depth) +
           " levels deep");
    ++interpreter.depth;
  }
  ~Frame() { --interpreter.depth; }

private:
  Interpreter &interpreter;
};

Value Interpreter::evaluate(const Expression &expression) {
  try {
    Frame frame(*this);
    return expression.evaluate(*this);
  } catch (Failure &failure) {
    if (failure.line == 0)
      failure.line = expression.line;
    throw;
  }
}

Flow Interpreter::execute(const Block &block) {
  spend(block.hidden.size());
  // The scope is new, and what it has already are no names that are hidden.
  for (const std::string &name : block.hidden)
    scope->variables.emplace_back(name, Undefined{"'" + name + "' is undefined"});
  for (const std::unique_ptr<Statement> &statement : block.statements)
    try {
      Frame frame(*this);
      Flow flow = statement->execute(*this);
      if (flow != Flow::Next)
        return flow;
    } catch (Failure &failure) {
      if (failure.line == 0)
        failure.line = statement->line;
      throw;
    }
  return Flow::Next;
}

Flow Interpreter::capture(std::shared_ptr<Scope> parent, std::string &text,
                          const std::function<Flow()> &run) {
  struct Redirect {
    Redirect(std::string *&slot, std::string *to) : slot(slot), before(slot) { slot = to; }
    ~Redirect() { slot = before; }
    std::string *&slot, *before;
  } redirect(output, &text);
  Inner inner(*this, std::move(parent));
  return run();
}

Value Interpreter::lookUp(const std::string &name) {
  if (const Value *value = scope->find(name))
    return *value;
  if (Value global = findGlobal(name); global.object())
    return global;
  return Undefined{"'" + name + "' is undefined"};
}

void Interpreter::assign(const Target &target, const Value &value) {
  if (!target.attribute.empty()) {
    Value holder = lookUp(target.name);
    auto *space = holder.as<Namespace>();
    if (!space)
      fail("'" + target.name + "' is no namespace, whose attributes alone can be assigned to");
    space->scope->set(target.attribute, value);
  } else if (target.items.empty()) {
    scope->set(target.name, value);
  } else {
    Values parts = items(value);
    if (parts.size() != target.items.size())
      fail(std::to_string(parts.size()) + " values cannot be assigned to " +
           std::to_string(target.items.size()) + " variables");
    for (size_t i = 0; i < parts.size(); ++i)
      assign(target.items[i], parts[i]);
  }
}

void requireDefined(const Value &value) {
  if (const Undefined *undefined = value.undefined())
    fail(undefined->what);
}

static Value missing(const Value &object, const std::string &name) {
  return Undefined{"a value of type " + typeName(object) + " has no attribute '" + name + "'"};
}

/// Of objects, and of the groups of groupby.
static std::optional<Value> ownAttribute(Interpreter &interpreter, const Value &object,
                                         std::string_view name) {
  if (Object *other = object.object())
    return other->attribute(interpreter, name);
  const Sequence *sequence = object.sequence();
  if (sequence && sequence->grouped && (name == "grouper" || name == "list"))
    return sequence->items[name == "grouper" ? 0 : 1];
  return std::nullopt;
}

Value Interpreter::attribute(const Value &object, const std::string &name) {
  requireDefined(object);
  if (name.starts_with("__"))
    fail("the attribute '" + name + "' is not safe");
  if (std::optional<Value> method = findMethod(object, name))
    return *method;
  if (std::optional<Value> found = ownAttribute(*this, object, name))
    return *found;
  if (const Mapping *mapping = object.mapping()) {
    spend(mapping->entries.size() / 8);
    if (const Value *found = mapping->named(name))
      return *found;
  }
  return missing(object, name);
}

static std::optional<Value> indexed(const Value &object, int64_t index) {
  const Sequence *sequence = object.sequence();
  const std::string *text = object.text();
  if (!text && !(sequence && sequence->indexed()))
    return std::nullopt;
  int64_t size = text ? countChars(*text) : static_cast<int64_t>(sequence->items.size());
  index += index < 0 ? size : 0;
  if (index < 0 || index >= size)
    return std::nullopt;
  if (sequence)
    return sequence->items[static_cast<size_t>(index)];
  size_t begin = offsetOf(*text, index);
  std::string character = text->substr(begin, offsetOf(std::string_view(*text).substr(begin), 1));
  return object.escaped() ? Value::markup(std::move(character)) : Value(std::move(character));
}

Value Interpreter::item(const Value &object, const Value &key) {
  requireDefined(object);
  if (const std::string *text = object.text())
    spend(text->size() / 64);
  if (const Mapping *mapping = object.mapping()) {
    spend(mapping->entries.size() / 8);
    if (const Value *found = hashable(key) ? mapping->find(key) : nullptr)
      return *found;
  } else if (auto index = key.integer()) {
    if (std::optional<Value> found = indexed(object, *index))
      return *found;
  }
  if (const std::string *name = key.text()) {
    if (std::optional<Value> method = findMethod(object, *name))
      return *method;
    if (std::optional<Value> found = ownAttribute(*this, object, *name))
      return *found;
    return missing(object, *name);
  }
  return Undefined{"a value of type " + typeName(object) + " has no such element"};
}

Value Interpreter::call(const Value &callee, Arguments &arguments) {
  requireDefined(callee);
  Object *object = callee.object();
  if (!object)
    fail("a value of type " + typeName(callee) + " is not callable");
  return object->call(*this, arguments);
}

Values Interpreter::items(const Value &value) {
  Values result;
  if (const Sequence *sequence = value.sequence()) {
    size_t from = sequence->kind == Sequence::Generator ? sequence->taken : 0;
    result.assign(sequence->items.begin() + static_cast<std::ptrdiff_t>(from),
                  sequence->items.end());
    if (sequence->kind == Sequence::Generator)
      sequence->taken = sequence->items.size();
  } else if (const Mapping *mapping = value.mapping()) {
    for (const auto &entry : mapping->entries)
      result.push_back(entry.first);
  } else if (const std::string *text = value.text()) {
    reserve(text->size());
    spend(text->size());
    for (std::string_view character : charsOf(*text))
      result.emplace_back(std::string(character));
  } else if (!value.isUndefined()) {
    fail("a value of type " + typeName(value) + " is not iterable");
  }
  spend(result.size());
  return result;
}

std::optional<Value> Namespace::attribute(Interpreter &interpreter, std::string_view name) {
  if (Value *found = scope->find(name))
    return *found;
  return std::nullopt;
}

} // namespace mica::rt::jinja
