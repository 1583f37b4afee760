// Evaluates expressions.
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/Interpreter.h"
#include "backends/runtime/text/jinja/Operators.h"
#include "backends/runtime/text/jinja/Print.h"

#include <algorithm>

namespace mica::rt::jinja {

Arguments ArgumentList::evaluate(Interpreter &interpreter) const {
  Arguments arguments;
  for (const Expr &value : positional)
    arguments.positional.push_back(interpreter.evaluate(*value));
  for (const auto &[name, value] : named)
    arguments.named.emplace_back(name, interpreter.evaluate(*value));
  if (star) {
    Value value = interpreter.evaluate(*star);
    for (Value &item : interpreter.items(value))
      arguments.positional.push_back(std::move(item));
  }
  if (!doubleStar)
    return arguments;
  Value value = interpreter.evaluate(*doubleStar);
  const Mapping *mapping = value.mapping();
  if (!mapping)
    fail("what follows ** is not a dict");
  interpreter.spend(mapping->entries.size() * mapping->entries.size() / 8);
  interpreter.reserveValues(3 * mapping->entries.size());
  for (const auto &[key, entry] : mapping->entries) {
    const std::string *name = key.text();
    auto isSame = [&](const auto &other) { return name && other.first == *name; };
    if (!name || std::any_of(arguments.named.begin(), arguments.named.end(), isSame))
      fail("a key after ** is not a name or given twice");
    arguments.named.emplace_back(*name, entry);
  }
  return arguments;
}

Value ConstantExpression::evaluate(Interpreter &) const { return value; }

Value NameExpression::evaluate(Interpreter &interpreter) const { return interpreter.lookUp(name); }

Value ListExpression::evaluate(Interpreter &interpreter) const {
  Values values;
  for (const Expr &item : items)
    values.push_back(interpreter.evaluate(*item));
  return makeSequence(std::move(values), tuple ? Sequence::Tuple : Sequence::List);
}

Value DictExpression::evaluate(Interpreter &interpreter) const {
  std::vector<std::pair<Value, Value>> values;
  for (const auto &[key, value] : entries) {
    Value name = interpreter.evaluate(*key);
    values.emplace_back(std::move(name), interpreter.evaluate(*value));
  }
  return makeMapping(interpreter, std::move(values));
}

Value AttributeExpression::evaluate(Interpreter &interpreter) const {
  return interpreter.attribute(interpreter.evaluate(*object), name);
}

Value ItemExpression::evaluate(Interpreter &interpreter) const {
  Value holder = interpreter.evaluate(*object);
  return interpreter.item(holder, interpreter.evaluate(*index));
}

/// A bound of a slice: none, or an integer.
static std::optional<int64_t> boundOf(Interpreter &interpreter, const Expr &expression) {
  if (!expression)
    return std::nullopt;
  Value value = interpreter.evaluate(*expression);
  if (value.isNone())
    return std::nullopt;
  if (auto bound = value.integer())
    return bound;
  requireDefined(value);
  fail("a slice needs integers, not " + typeName(value));
}

/// The elements that Python's slice selects from `size`: `count` of them, starting at `first`.
struct SliceRange {
  int64_t first = 0, step = 1, count = 0;
};
static SliceRange resolveSlice(std::optional<int64_t> start, std::optional<int64_t> stop,
                               int64_t step, int64_t size) {
  auto clamped = [&](std::optional<int64_t> bound, int64_t fallback) {
    if (!bound)
      return fallback;
    int64_t index = *bound < 0 ? *bound + size : *bound;
    return step > 0 ? std::clamp<int64_t>(index, 0, size)
                    : std::clamp<int64_t>(index, -1, size - 1);
  };
  int64_t from = clamped(start, step > 0 ? 0 : size - 1), to = clamped(stop, step > 0 ? size : -1);
  // Steps beyond the size are equivalent; clamping avoids overflow.
  step = std::clamp(step, -size - 1, size + 1);
  int64_t distance = step > 0 ? to - from : from - to, each = std::abs(step);
  return {from, step, distance > 0 ? (distance + each - 1) / each : 0};
}

static TrackedText slicedText(const TrackedText &text, SliceRange range) {
  TrackedText result;
  Chars::Iterator at(text.bytes, offsetOf(text.bytes, std::max<int64_t>(range.first, 0)));
  for (int64_t i = 0; i < range.count; ++i) {
    result.appendPiece(text, *at);
    if (i + 1 < range.count)
      std::advance(at, range.step);
  }
  return result;
}

Value SliceExpression::evaluate(Interpreter &interpreter) const {
  Value holder = interpreter.evaluate(*object);
  requireDefined(holder);
  auto from = boundOf(interpreter, start), to = boundOf(interpreter, stop);
  int64_t by = boundOf(interpreter, step).value_or(1);
  if (by == 0)
    fail("a slice's step is 0");
  if (Text text = holder.tracked()) {
    interpreter.spend(text->size() / 8);
    return interpreter.textLike(
        holder, slicedText(*text, resolveSlice(from, to, by, countChars(text->bytes))));
  }
  const Sequence *sequence = holder.sequence();
  if (!sequence || !sequence->indexed())
    fail("a value of type " + typeName(holder) + " cannot be sliced");
  SliceRange range = resolveSlice(from, to, by, static_cast<int64_t>(sequence->items.size()));
  interpreter.spend(static_cast<uint64_t>(range.count));
  interpreter.reserveValues(static_cast<uint64_t>(range.count));
  Values result;
  for (int64_t i = 0; i < range.count; ++i)
    result.push_back(sequence->items[static_cast<size_t>(range.first + i * range.step)]);
  return makeSequence(std::move(result), sequence->kind);
}

Value CallExpression::call(Interpreter &interpreter, const Value *caller) const {
  Value function = interpreter.evaluate(*callee);
  Arguments values = arguments.evaluate(interpreter);
  if (caller)
    values.named.emplace_back("caller", *caller);
  return interpreter.call(function, values);
}

Value CallExpression::evaluate(Interpreter &interpreter) const {
  return call(interpreter, nullptr);
}

Value FilterExpression::apply(Interpreter &interpreter, const Value &value) const {
  if (const std::string *text = value.text())
    interpreter.spend(text->size() / 16);
  return filter(interpreter, value, arguments.evaluate(interpreter));
}

Value FilterExpression::evaluate(Interpreter &interpreter) const {
  return apply(interpreter, interpreter.evaluate(*input));
}

Value TestExpression::evaluate(Interpreter &interpreter) const {
  Value value = interpreter.evaluate(*input);
  return test(interpreter, value, arguments.evaluate(interpreter)) != negated;
}

Value UnaryExpression::evaluate(Interpreter &interpreter) const {
  Value value = interpreter.evaluate(*operand);
  if (operation == "not")
    return !truth(value);
  if (auto integer = value.integer())
    return combine(interpreter, operation, Value(int64_t(0)), Value(*integer));
  if (const double *real = value.real())
    return operation == "-" ? -*real : *real;
  requireDefined(value);
  fail("a value of type " + typeName(value) + " cannot be negated");
}

Value BinaryExpression::evaluate(Interpreter &interpreter) const {
  Value first = interpreter.evaluate(*left);
  if (operation == "and")
    return truth(first) ? interpreter.evaluate(*right) : first;
  if (operation == "or")
    return truth(first) ? first : interpreter.evaluate(*right);
  return combine(interpreter, operation, first, interpreter.evaluate(*right));
}

Value ConcatExpression::evaluate(Interpreter &interpreter) const {
  TrackedText text;
  for (const Expr &part : parts) {
    Text piece = toText(interpreter, interpreter.evaluate(*part));
    interpreter.reserve(piece->size());
    text.append(*piece);
  }
  return interpreter.text(std::move(text));
}

static bool compare(Interpreter &interpreter, const std::string &operation, const Value &a,
                    const Value &b) {
  if (operation == "==")
    return equal(interpreter, a, b);
  if (operation == "!=")
    return !equal(interpreter, a, b);
  if (operation == "in")
    return contains(interpreter, a, b);
  if (operation == "not in")
    return !contains(interpreter, a, b);
  if (operation == "<")
    return less(interpreter, a, b);
  if (operation == ">")
    return less(interpreter, b, a);
  // NaN is neither less nor equal.
  return operation == "<=" ? less(interpreter, a, b) || equal(interpreter, a, b)
                           : less(interpreter, b, a) || equal(interpreter, a, b);
}

Value CompareExpression::evaluate(Interpreter &interpreter) const {
  Value left = interpreter.evaluate(*first);
  for (const auto &[operation, expression] : others) {
    Value right = interpreter.evaluate(*expression);
    if (!compare(interpreter, operation, left, right))
      return false;
    left = std::move(right);
  }
  return true;
}

Value ConditionalExpression::evaluate(Interpreter &interpreter) const {
  if (truth(interpreter.evaluate(*condition)))
    return interpreter.evaluate(*then);
  if (otherwise)
    return interpreter.evaluate(*otherwise);
  return Undefined{"the inline if-expression has no else and was not taken"};
}

} // namespace mica::rt::jinja
