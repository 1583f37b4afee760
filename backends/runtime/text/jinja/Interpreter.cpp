#include "backends/runtime/text/jinja/Interpreter.h"
#include "backends/runtime/text/jinja/Characters.h"

#include <algorithm>

namespace mica::rt::jinja {

Value *Scope::find(Budget &budget, std::string_view name) {
  for (Scope *scope = this; scope; scope = scope->parent.get()) {
    budget.spend(scope->variables.size() / 16);
    for (auto &variable : scope->variables)
      if (variable.first == name)
        return &variable.second;
  }
  return nullptr;
}

void Scope::set(Budget &budget, std::string_view name, Value value) {
  budget.spend(variables.size() / 16);
  for (auto &variable : variables)
    if (variable.first == name) {
      variable.second = std::move(value);
      return;
    }
  variables.emplace_back(name, std::move(value));
}

void Budget::spend(uint64_t count) {
  steps += count;
  if (count > limits.steps || steps > limits.steps)
    fail("the template takes more than " + std::to_string(limits.steps) + " steps");
}

void Budget::reserve(uint64_t count) {
  bytes += count;
  if (count > limits.madeBytes || bytes > limits.madeBytes)
    fail("the template makes more than " + std::to_string(limits.madeBytes) +
         " bytes of text and lists");
  spend(count / 64);
}

void Budget::reserveValues(uint64_t count) {
  reserve(std::min(count, limits.madeBytes) * sizeof(Value));
}

Interpreter::Interpreter(std::initializer_list<Value> contexts, const Limits &limits,
                         const Clock &clock)
    : Budget(limits), scope(std::make_shared<Scope>()), clock(clock) {
  for (const Value &context : contexts)
    if (const Mapping *variables = context.mapping())
      for (const auto &[name, value] : variables->entries)
        scope->set(*this, *name.text(), value);
  scope = std::make_shared<Scope>(Scope{scope, {}});
}

Interpreter::~Interpreter() {
  for (const std::shared_ptr<Scope> &held : kept)
    held->variables.clear();
}

TrackedText Interpreter::render(const Block &block) {
  TrackedText text;
  output = &text;
  execute(block);
  return text;
}

/// The cost of a text, including its marks.
static uint64_t sizeOf(const TrackedText &text) {
  return text.size() + text.untrusted.size() * sizeof(ByteRanges::Range);
}

Value Interpreter::text(TrackedText text) {
  reserve(sizeOf(text));
  return Value(std::move(text));
}

Value Interpreter::textLike(const Value &source, TrackedText text) {
  reserve(sizeOf(text));
  return source.escaped() ? Value::markup(std::move(text)) : Value(std::move(text));
}

void Interpreter::reserveOutput(size_t count) {
  if (output->size() + count > limits.outputBytes)
    fail("the template writes more than " + std::to_string(limits.outputBytes) + " bytes");
}

void Interpreter::write(const TrackedText &text) {
  reserveOutput(text.size());
  reserve(sizeOf(text));
  output->append(text);
}

void Interpreter::write(std::string_view text) {
  reserveOutput(text.size());
  reserve(text.size());
  output->append(text);
}

namespace {
/// Counts the bytes that a search reads; many of them are one step.
class SearchCost {
public:
  explicit SearchCost(Budget &budget) : budget(budget) { budget.spend(1); }
  void add(uint64_t count) {
    bytes += count;
    budget.spend(bytes / 16);
    bytes %= 16;
  }

private:
  Budget &budget;
  uint64_t bytes = 0;
};

/// The length of the common prefix of `part` and the text at `at`.
size_t agreement(std::string_view text, std::string_view part, size_t at) {
  auto end = std::mismatch(part.begin(), part.end(), text.begin() + static_cast<ptrdiff_t>(at));
  return static_cast<size_t>(end.first - part.begin());
}
} // namespace

size_t findText(Budget &budget, std::string_view text, std::string_view part, size_t from) {
  if (part.empty() || from > text.size())
    return from <= text.size() ? from : text.npos;
  SearchCost cost(budget);
  while (from + part.size() <= text.size()) {
    size_t at = std::min(text.find(part[0], from), text.size());
    cost.add((at - from) / 4);
    if (at + part.size() > text.size())
      break;
    size_t agreed = agreement(text, part, at);
    cost.add(agreed + 1);
    if (agreed == part.size())
      return at;
    from = at + 1;
  }
  return text.npos;
}

size_t findLastText(Budget &budget, std::string_view text, std::string_view part) {
  if (part.size() > text.size())
    return text.npos;
  SearchCost cost(budget);
  for (size_t end = text.size() - part.size() + 1; end > 0; --end) {
    size_t agreed = agreement(text, part, end - 1);
    cost.add(agreed + 1);
    if (agreed == part.size())
      return end - 1;
  }
  return text.npos;
}

/// A node that is being run: counts it, and adds its line to errors.
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
  // The scope is new: the names that it already has are not hidden.
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

Flow Interpreter::capture(std::shared_ptr<Scope> parent, TrackedText &text,
                          const std::function<Flow()> &run) {
  struct Redirect {
    Redirect(TrackedText *&slot, TrackedText *to) : slot(slot), before(slot) { slot = to; }
    ~Redirect() { slot = before; }
    TrackedText *&slot, *before;
  } redirect(output, &text);
  Inner inner(*this, std::move(parent));
  return run();
}

Value Interpreter::lookUp(const std::string &name) {
  if (const Value *value = scope->find(*this, name))
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
      fail("'" + target.name + "' is not a namespace, so its attributes cannot be assigned to");
    space->scope->set(*this, target.attribute, value);
  } else if (target.items.empty()) {
    scope->set(*this, target.name, value);
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

/// Attributes of objects, and of the groups of groupby.
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
    if (const Value *found = mapping->named(*this, name))
      return *found;
  }
  return missing(object, name);
}

static std::optional<Value> indexed(const Value &object, int64_t index) {
  const Sequence *sequence = object.sequence();
  Text text = object.tracked();
  if (!text && !(sequence && sequence->indexed()))
    return std::nullopt;
  int64_t size = text ? countChars(text->bytes) : static_cast<int64_t>(sequence->items.size());
  index += index < 0 ? size : 0;
  if (index < 0 || index >= size)
    return std::nullopt;
  if (sequence)
    return sequence->items[static_cast<size_t>(index)];
  TrackedText character = text->piece(*Chars::Iterator(text->bytes, offsetOf(text->bytes, index)));
  return object.escaped() ? Value::markup(std::move(character)) : Value(std::move(character));
}

Value Interpreter::item(const Value &object, const Value &key) {
  requireDefined(object);
  if (const std::string *text = object.text())
    spend(text->size() / 32);
  if (const Mapping *mapping = object.mapping()) {
    if (const Value *found = hashable(*this, key) ? mapping->find(*this, key) : nullptr)
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
    reserveValues(sequence->items.size() - from);
    result.assign(sequence->items.begin() + static_cast<std::ptrdiff_t>(from),
                  sequence->items.end());
    if (sequence->kind == Sequence::Generator)
      sequence->taken = sequence->items.size();
  } else if (const Mapping *mapping = value.mapping()) {
    reserveValues(mapping->entries.size());
    for (const auto &entry : mapping->entries)
      result.push_back(entry.first);
  } else if (Text text = value.tracked()) {
    for (std::string_view character : charsOf(text->bytes)) {
      reserveValues(valuesOfText);
      result.emplace_back(text->piece(character));
    }
  } else if (!value.isUndefined()) {
    fail("a value of type " + typeName(value) + " is not iterable");
  }
  spend(result.size());
  return result;
}

Values pairsOf(Interpreter &interpreter, const Mapping &mapping) {
  interpreter.spend(mapping.entries.size());
  interpreter.reserveValues(mapping.entries.size() * valuesOfText);
  Values pairs;
  for (const auto &[key, value] : mapping.entries)
    pairs.push_back(makeTuple({key, value}));
  return pairs;
}

std::optional<Value> Namespace::attribute(Interpreter &interpreter, std::string_view name) {
  if (Value *found = scope->find(interpreter, name))
    return *found;
  return std::nullopt;
}

} // namespace mica::rt::jinja
