#include "backends/runtime/text/jinja/Interpreter.h"
#include "backends/runtime/text/jinja/Characters.h"

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

void requireDefined(const Value &value) {
  if (const Undefined *undefined = value.undefined())
    fail(undefined->what);
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
