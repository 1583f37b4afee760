// Lookup of a template's names, and of attributes and items of values: the part of the interpreter
// that depends on the functions and methods, which call the rest of it.
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/Functions.h"
#include "backends/runtime/text/jinja/Interpreter.h"
#include "backends/runtime/text/jinja/Methods.h"

namespace mica::rt::jinja {

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

} // namespace mica::rt::jinja
