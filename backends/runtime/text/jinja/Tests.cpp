// Tests, as in `x is defined`.
#include "backends/runtime/text/jinja/Case.h"
#include "backends/runtime/text/jinja/FilterTables.h"
#include "backends/runtime/text/jinja/Operators.h"
#include "backends/runtime/text/jinja/Print.h"

namespace mica::rt::jinja {

namespace {
void takesNothing(const Arguments &arguments) { Parameters("the test", arguments, {}); }

const Value &only(const Arguments &arguments) {
  return *Parameters("the test", arguments, {"other"}, 1)[0];
}

/// A test of the letters of a text; each lookup of a character class is a step.
template <bool (*holds)(std::string_view)>
bool ofLetters(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  takesNothing(arguments);
  Text text = toText(interpreter, value);
  interpreter.spend(text->size());
  return holds(text->bytes);
}

template <bool (*holds)(const Value &)>
bool plain(Interpreter &, const Value &value, const Arguments &arguments) {
  takesNothing(arguments);
  return holds(value);
}

bool isDefined(const Value &value) { return !value.isUndefined(); }
bool isUndefined(const Value &value) { return value.isUndefined(); }
bool isNone(const Value &value) { return value.isNone(); }
bool isString(const Value &value) { return value.text() != nullptr; }
bool isNumber(const Value &value) { return value.number().has_value(); }
bool isInteger(const Value &value) { return value.integer() && !value.boolean(); }
bool isFloat(const Value &value) { return value.real() != nullptr; }
bool isBoolean(const Value &value) { return value.boolean() != nullptr; }
bool isTrue(const Value &value) { return value.boolean() && *value.boolean(); }
bool isFalse(const Value &value) { return value.boolean() && !*value.boolean(); }
bool isMapping(const Value &value) { return value.mapping() != nullptr; }
bool isCallable(const Value &value) {
  // Jinja2's undefined values are callable, to raise their message.
  return value.isUndefined() || (value.object() && value.object()->callable());
}
bool isIterable(const Value &value) {
  return value.isUndefined() || value.text() || value.sequence() || value.mapping();
}
bool isSequence(const Value &value) {
  return value.isUndefined() || value.text() || value.mapping() ||
         (value.sequence() && value.sequence()->indexed());
}

bool isEscaped(const Value &value) { return value.escaped(); }

bool isMultiple(Interpreter &interpreter, const Value &value, const Value &divisor) {
  return equal(interpreter, combine(interpreter, "%", value, divisor), Value(int64_t(0)));
}
bool isEven(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  takesNothing(arguments);
  return isMultiple(interpreter, value, Value(int64_t(2)));
}
bool isOdd(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  takesNothing(arguments);
  return equal(interpreter, combine(interpreter, "%", value, Value(int64_t(2))), Value(int64_t(1)));
}
bool isDivisible(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return isMultiple(interpreter, value, only(arguments));
}

bool isEqual(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return equal(interpreter, value, only(arguments));
}
bool isUnequal(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return !equal(interpreter, value, only(arguments));
}
bool isLess(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return less(interpreter, value, only(arguments));
}
bool isGreater(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return less(interpreter, only(arguments), value);
}
bool isAtMost(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return less(interpreter, value, only(arguments)) || equal(interpreter, value, only(arguments));
}
bool isAtLeast(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return less(interpreter, only(arguments), value) || equal(interpreter, value, only(arguments));
}
bool isIn(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return contains(interpreter, value, only(arguments));
}

/// Python's `is`: defined for constants and for the same container.
bool isSame(Interpreter &, const Value &value, const Arguments &arguments) {
  const Value &other = only(arguments);
  if (value.isNone() || other.isNone())
    return value.isNone() && other.isNone();
  if (value.boolean() || other.boolean())
    return value.boolean() && other.boolean() && *value.boolean() == *other.boolean();
  if (value.sequence() || value.mapping() || value.object())
    return value.sequence() == other.sequence() && value.mapping() == other.mapping() &&
           value.object() == other.object();
  if (value.isUndefined() != other.isUndefined())
    return false;
  fail("the test 'sameas' is supported for true, false, none and containers only");
}

bool isFilterName(Interpreter &, const Value &value, const Arguments &arguments) {
  takesNothing(arguments);
  return value.text() && (findFilter(*value.text()) || isRefusedFilter(*value.text()));
}
bool isTestName(Interpreter &, const Value &value, const Arguments &arguments) {
  takesNothing(arguments);
  return value.text() && findTest(*value.text());
}

constexpr std::pair<std::string_view, Test> tests[] = {
    {"defined", plain<isDefined>},
    {"undefined", plain<isUndefined>},
    {"none", plain<isNone>},
    {"string", plain<isString>},
    {"number", plain<isNumber>},
    {"integer", plain<isInteger>},
    {"float", plain<isFloat>},
    {"boolean", plain<isBoolean>},
    {"true", plain<isTrue>},
    {"false", plain<isFalse>},
    {"mapping", plain<isMapping>},
    {"iterable", plain<isIterable>},
    {"sequence", plain<isSequence>},
    {"callable", plain<isCallable>},
    {"lower", ofLetters<isLowerText>},
    {"upper", ofLetters<isUpperText>},
    {"escaped", plain<isEscaped>},
    {"even", isEven},
    {"odd", isOdd},
    {"divisibleby", isDivisible},
    {"in", isIn},
    {"sameas", isSame},
    {"eq", isEqual},
    {"equalto", isEqual},
    {"==", isEqual},
    {"ne", isUnequal},
    {"!=", isUnequal},
    {"lt", isLess},
    {"lessthan", isLess},
    {"<", isLess},
    {"le", isAtMost},
    {"<=", isAtMost},
    {"gt", isGreater},
    {"greaterthan", isGreater},
    {">", isGreater},
    {"ge", isAtLeast},
    {">=", isAtLeast},
    {"filter", isFilterName},
    {"test", isTestName},
};
} // namespace

Test findTest(std::string_view name) {
  for (const auto &[known, test] : tests)
    if (known == name)
      return test;
  return nullptr;
}

} // namespace mica::rt::jinja
