// The functions of the environment.
#include "backends/runtime/text/jinja/Functions.h"
#include "backends/runtime/text/jinja/Interpreter.h"
#include "backends/runtime/text/jinja/Print.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
using Run = Value (*)(Interpreter &, Arguments &);

/// The sandbox's limit for ranges.
constexpr int64_t maxRange = 100'000;

class Function final : public Object {
public:
  Function(Run run) : run(run) {}
  std::string_view typeName() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Interpreter &interpreter, Arguments &arguments) override {
    return run(interpreter, arguments);
  }

private:
  Run run;
};

Value range(Interpreter &interpreter, Arguments &arguments) {
  Parameters given("range", arguments, {"start", "stop", "step"}, 1);
  for (size_t i = 0; i < 3; ++i)
    if (given[i])
      requireDefined(*given[i]);
  int64_t from = given[1] ? given.integer(0, 0) : 0;
  int64_t to = given[1] ? given.integer(1, 0) : given.integer(0, 0), step = given.integer(2, 1);
  if (step == 0 || !arguments.named.empty())
    fail("range takes numbers without names, and a step that is not 0");
  Values items;
  for (__int128 i = from; step > 0 ? i < to : i > to; i += step) {
    if (static_cast<int64_t>(items.size()) == maxRange)
      fail("a range of more than " + std::to_string(maxRange) + " numbers is refused");
    items.emplace_back(static_cast<int64_t>(i));
  }
  interpreter.spend(items.size());
  interpreter.reserveValues(items.size());
  return makeSequence(std::move(items), Sequence::Range);
}

/// dict(mapping or pairs, name=value...)
Value dict(Interpreter &interpreter, Arguments &arguments) {
  std::vector<std::pair<Value, Value>> entries;
  if (arguments.positional.size() > 1)
    fail("dict takes at most one value without a name");
  for (const Value &value : arguments.positional) {
    requireDefined(value);
    if (const Mapping *mapping = value.mapping()) {
      interpreter.reserveValues(2 * mapping->entries.size());
      entries = mapping->entries;
    } else {
      for (const Value &pair : interpreter.items(value)) {
        Values parts = interpreter.items(pair);
        if (parts.size() != 2)
          fail("dict takes pairs");
        entries.emplace_back(parts[0], parts[1]);
      }
    }
  }
  for (auto &[name, value] : arguments.named)
    entries.emplace_back(Value::own(name), std::move(value));
  return makeMapping(interpreter, std::move(entries));
}

Value makeNamespace(Interpreter &interpreter, Arguments &arguments) {
  auto scope = std::make_shared<Scope>();
  Value attributes = dict(interpreter, arguments);
  for (const auto &[name, value] : attributes.mapping()->entries) {
    if (!name.text())
      fail("the attributes of a namespace have names");
    scope->set(interpreter, *name.text(), value);
  }
  interpreter.keep(scope);
  return std::shared_ptr<Object>(std::make_shared<Namespace>(std::move(scope)));
}

Value raiseException(Interpreter &interpreter, Arguments &arguments) {
  Parameters given("raise_exception", arguments, {"message"}, 1);
  fail("the template refuses this conversation: " + toText(interpreter, *given[0])->bytes);
}

Value strftimeNow(Interpreter &interpreter, Arguments &arguments) {
  Parameters given("strftime_now", arguments, {"format"}, 1);
  std::string format = given.text(0, "");
  if (format.find("%f") != format.npos || format.size() > 200)
    fail("strftime_now does not support microseconds, and formats have at most 200 bytes");
  // Python's local time has no zone.
  for (size_t at = format.find('%'); at != format.npos; at = format.find('%', at)) {
    if (at + 1 < format.size() && (format[at + 1] == 'z' || format[at + 1] == 'Z'))
      format.erase(at, 2);
    else
      at = std::min(at + 2, format.size());
  }
  return interpreter.text(interpreter.madeOf(*given[0], interpreter.now(format)));
}

Value unsupported(Interpreter &, Arguments &) { fail("the function 'lipsum' is not supported"); }

/// Returns its values in turn, cyclically.
class Cycler final : public Object, public std::enable_shared_from_this<Cycler> {
public:
  explicit Cycler(Values items) : items(std::move(items)) {}
  std::string_view typeName() const override { return "Cycler"; }
  std::optional<Value> attribute(Interpreter &interpreter, std::string_view name) override;
  Value next() { return items[std::exchange(at, (at + 1) % items.size())]; }
  void reset() { at = 0; }

private:
  Values items;
  size_t at = 0;
};

/// The methods `next` and `reset` of a cycler.
class CyclerMethod final : public Object {
public:
  CyclerMethod(std::shared_ptr<Cycler> cycler, bool resets)
      : cycler(std::move(cycler)), resets(resets) {}
  std::string_view typeName() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Interpreter &, Arguments &arguments) override {
    expectNoArguments("the method", arguments);
    if (!resets)
      return cycler->next();
    cycler->reset();
    return {};
  }

private:
  std::shared_ptr<Cycler> cycler;
  bool resets;
};

std::optional<Value> Cycler::attribute(Interpreter &, std::string_view name) {
  if (name == "next" || name == "reset")
    return Value(std::shared_ptr<Object>(
        std::make_shared<CyclerMethod>(shared_from_this(), name == "reset")));
  if (name == "current")
    return items[at];
  if (name == "pos")
    return Value(static_cast<int64_t>(at));
  return name == "items" ? std::optional(makeTuple(items)) : std::nullopt;
}

Value makeCycler(Interpreter &, Arguments &arguments) {
  if (arguments.positional.empty() || !arguments.named.empty())
    fail("cycler takes at least one value, and none with a name");
  return std::shared_ptr<Object>(std::make_shared<Cycler>(std::move(arguments.positional)));
}

/// Returns an empty text on the first call, and its separator from then on.
class Joiner final : public Object {
public:
  explicit Joiner(Value separator) : separator(std::move(separator)) {}
  std::string_view typeName() const override { return "Joiner"; }
  bool callable() const override { return true; }
  Value call(Interpreter &, Arguments &arguments) override {
    expectNoArguments("the joiner", arguments);
    return std::exchange(used, true) ? separator : Value("");
  }
  std::optional<Value> attribute(Interpreter &, std::string_view name) override {
    return name == "sep"    ? std::optional(separator)
           : name == "used" ? std::optional(Value(used))
                            : std::nullopt;
  }

private:
  Value separator;
  bool used = false;
};

Value makeJoiner(Interpreter &, Arguments &arguments) {
  Parameters given("joiner", arguments, {"sep"});
  return std::shared_ptr<Object>(std::make_shared<Joiner>(given[0] ? *given[0] : Value(", ")));
}

constexpr std::pair<std::string_view, Run> functions[] = {
    {"range", range},
    {"dict", dict},
    {"namespace", makeNamespace},
    {"raise_exception", raiseException},
    {"strftime_now", strftimeNow},
    {"cycler", makeCycler},
    {"joiner", makeJoiner},
    {"lipsum", unsupported},
};
} // namespace

Value findGlobal(std::string_view name) {
  for (const auto &[known, run] : functions)
    if (known == name)
      return std::shared_ptr<Object>(std::make_shared<Function>(run));
  return {};
}

} // namespace mica::rt::jinja
