#include "backends/runtime/text/jinja/CollectionMethods.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
Value view(Values values) { return makeSequence(std::move(values), Sequence::View); }

Value items(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  return view(pairsOf(interpreter, *object.mapping()));
}
Value keys(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  return view(interpreter.items(object));
}
Value values(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  Values all;
  interpreter.reserveValues(object.mapping()->entries.size());
  for (const auto &entry : object.mapping()->entries)
    all.push_back(entry.second);
  interpreter.spend(all.size());
  return view(std::move(all));
}
Value get(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("get", arguments, {"key", "default"}, 1);
  if (!hashable(interpreter, *given[0]))
    fail("unhashable type: '" + typeName(*given[0]) + "'");
  if (const Value *found = object.mapping()->find(interpreter, *given[0]))
    return *found;
  return given[1] ? *given[1] : Value();
}
Value copy(Interpreter &, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  return object;
}

Value countItems(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  const Value &wanted = *Parameters("count", arguments, {"value"}, 1)[0];
  Values values = interpreter.items(object);
  return static_cast<int64_t>(std::count_if(values.begin(), values.end(), [&](const Value &value) {
    return equal(interpreter, value, wanted);
  }));
}
Value indexOfItem(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  const Value &wanted = *Parameters("index", arguments, {"value"}, 1)[0];
  Values values = interpreter.items(object);
  auto found = std::find_if(values.begin(), values.end(),
                            [&](const Value &value) { return equal(interpreter, value, wanted); });
  if (found == values.end())
    fail("index does not find its value");
  return static_cast<int64_t>(found - values.begin());
}

constexpr MethodRow ofDicts[] = {
    {"items", items},     {"keys", keys},          {"values", values},    {"get", get},
    {"copy", copy},       {"clear", nullptr},      {"fromkeys", nullptr}, {"pop", nullptr},
    {"popitem", nullptr}, {"setdefault", nullptr}, {"update", nullptr},
};
constexpr MethodRow ofLists[] = {
    {"count", countItems}, {"index", indexOfItem}, {"append", nullptr}, {"clear", nullptr},
    {"copy", copy},        {"extend", nullptr},    {"insert", nullptr}, {"pop", nullptr},
    {"remove", nullptr},   {"reverse", nullptr},   {"sort", nullptr},
};
constexpr MethodRow ofTuples[] = {{"count", countItems}, {"index", indexOfItem}};
} // namespace

MethodRows dictMethods() { return ofDicts; }
MethodRows listMethods() { return ofLists; }
MethodRows tupleMethods() { return ofTuples; }

} // namespace mica::rt::jinja
