// Python's arithmetic on values.
#include "backends/runtime/text/jinja/Operators.h"
#include "backends/runtime/text/jinja/Format.h"
#include "backends/runtime/text/jinja/Print.h"
#include "backends/runtime/text/jinja/Search.h"

#include <cmath>

namespace mica::rt::jinja {

namespace {
[[noreturn]] void tooLarge() { fail("a whole number is beyond 64 bits"); }

int64_t floorDivided(int64_t a, int64_t b) {
  if (a == INT64_MIN && b == -1)
    tooLarge();
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t modulo(int64_t a, int64_t b) {
  if (b == -1)
    return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0)
      fail("0 cannot be raised to a negative power");
    return std::pow(static_cast<double>(base), static_cast<double>(exponent));
  }
  if (base == 0 || base == 1 || base == -1)
    return base == -1 && exponent % 2 == 0 ? int64_t(1) : exponent == 0 ? int64_t(1) : base;
  int64_t result = 1;
  for (; exponent > 0; --exponent)
    if (__builtin_mul_overflow(result, base, &result))
      tooLarge();
  return result;
}

Value integers(std::string_view operation, int64_t a, int64_t b) {
  int64_t result = 0;
  bool over = false;
  if (operation == "+")
    over = __builtin_add_overflow(a, b, &result);
  else if (operation == "-")
    over = __builtin_sub_overflow(a, b, &result);
  else if (operation == "*")
    over = __builtin_mul_overflow(a, b, &result);
  else if (operation == "**")
    return power(a, b);
  else if (b == 0)
    fail("division by zero");
  else if (operation == "/")
    return static_cast<double>(a) / static_cast<double>(b);
  else
    result = operation == "//" ? floorDivided(a, b) : modulo(a, b);
  if (over)
    tooLarge();
  return result;
}

Value reals(std::string_view operation, double a, double b) {
  if (operation == "+")
    return a + b;
  if (operation == "-")
    return a - b;
  if (operation == "*")
    return a * b;
  if (operation == "**") {
    double result = std::pow(a, b);
    if (std::isnan(result) && !std::isnan(a) && !std::isnan(b))
      fail("the power of two numbers is complex, which is not supported");
    if (a == 0 && b < 0)
      fail("0 cannot be raised to a negative power");
    if (std::isinf(result) && std::isfinite(a) && std::isfinite(b))
      fail("the result of the power is too large");
    return result;
  }
  if (b == 0)
    fail("division by zero");
  if (operation == "/")
    return a / b;
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0))
    rest += b;
  if (operation == "%")
    return rest == 0 ? std::copysign(0.0, b) : rest;
  double quotient = (a - rest) / b;
  if (quotient == 0)
    return std::copysign(0.0, a / b);
  double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1 : whole;
}

/// A string or a list, repeated `count` times.
Value repeated(Interpreter &interpreter, const Value &value, int64_t count) {
  auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (Text text = value.tracked()) {
    uint64_t size = 0;
    if (__builtin_mul_overflow(times, uint64_t(text->size()), &size))
      size = UINT64_MAX;
    interpreter.reserve(size);
    TrackedText result;
    for (; times > 0 && text->size() > 0; --times)
      result.append(*text);
    return value.escaped() ? Value::markup(std::move(result)) : Value(std::move(result));
  }
  const Sequence &sequence = *value.sequence();
  uint64_t size = 0;
  if (__builtin_mul_overflow(times, uint64_t(sequence.items.size()), &size) || size > INT32_MAX)
    size = INT32_MAX;
  interpreter.spend(size);
  interpreter.reserveValues(size);
  Values items;
  for (; times > 0 && !sequence.items.empty(); --times)
    items.insert(items.end(), sequence.items.begin(), sequence.items.end());
  return makeSequence(std::move(items), sequence.kind);
}

bool isJoinable(const Value &value) {
  return value.sequence() && value.sequence()->kind <= Sequence::Tuple;
}
} // namespace

Value combine(Interpreter &interpreter, std::string_view operation, const Value &left,
              const Value &right) {
  if (left.integer() && right.integer())
    return integers(operation, *left.integer(), *right.integer());
  if (left.number() && right.number())
    return reals(operation, *left.number(), *right.number());
  Text a = left.tracked(), b = right.tracked();
  if (operation == "+" && a && b && left.escaped() != right.escaped())
    return combine(interpreter, operation, escape(interpreter, left), escape(interpreter, right));
  if (operation == "+" && a && b) {
    TrackedText sum = *a;
    sum.append(*b);
    return interpreter.textLike(left, std::move(sum));
  }
  if (operation == "%" && left.escaped())
    fail("the format of an escaped text is not supported");
  if (operation == "%" && a)
    return interpreter.text(formatPercent(interpreter, *a, right));
  if (operation == "+" && isJoinable(left) && isJoinable(right) &&
      left.sequence()->kind == right.sequence()->kind) {
    interpreter.spend(left.sequence()->items.size() + right.sequence()->items.size());
    interpreter.reserveValues(left.sequence()->items.size() + right.sequence()->items.size());
    Values items = left.sequence()->items;
    items.insert(items.end(), right.sequence()->items.begin(), right.sequence()->items.end());
    return makeSequence(std::move(items), left.sequence()->kind);
  }
  if (operation == "*" && (a || isJoinable(left)) && right.integer())
    return repeated(interpreter, left, *right.integer());
  if (operation == "*" && (b || isJoinable(right)) && left.integer())
    return repeated(interpreter, right, *left.integer());
  requireDefined(left);
  requireDefined(right);
  fail("the operator " + std::string(operation) + " does not take " + typeName(left) + " and " +
       typeName(right));
}

bool contains(Interpreter &interpreter, const Value &needle, const Value &haystack) {
  if (const std::string *text = haystack.text()) {
    const std::string *part = needle.text();
    if (!part)
      fail("only a string can be in a string, not a value of type " + typeName(needle));
    return findText(interpreter, *text, *part) != text->npos;
  }
  if (const Mapping *mapping = haystack.mapping()) {
    if (!hashable(interpreter, needle))
      fail("unhashable type: '" + typeName(needle) + "'");
    return mapping->find(interpreter, needle) != nullptr;
  }
  if (const Sequence *sequence = haystack.sequence();
      sequence && sequence->kind == Sequence::Generator) {
    while (sequence->taken < sequence->items.size())
      if (equal(interpreter, sequence->items[sequence->taken++], needle))
        return true;
    return false;
  }
  for (const Value &item : interpreter.items(haystack))
    if (equal(interpreter, item, needle))
      return true;
  return false;
}

} // namespace mica::rt::jinja
