// The methods of strings, dicts and lists.
#include "backends/runtime/text/jinja/Methods.h"
#include "backends/runtime/text/jinja/CollectionMethods.h"
#include "backends/runtime/text/jinja/Print.h"
#include "backends/runtime/text/jinja/TextMethods.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
class Method final : public Object {
public:
  Method(Value object, const MethodRow &row) : object(std::move(object)), row(row) {}
  std::string_view typeName() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Interpreter &interpreter, Arguments &arguments) override {
    if (!row.run)
      fail("the method '" + std::string(row.name) + "' is not supported");
    if (const std::string *text = object.text())
      interpreter.spend(text->size() / 16);
    if (!object.escaped() || row.markup == Markup::Plain)
      return row.run(interpreter, object, arguments);
    if (row.markup == Markup::Escaping) {
      for (Value &argument : arguments.positional)
        argument = argument.text() ? escape(interpreter, argument) : argument;
      for (auto &[name, argument] : arguments.named)
        argument = argument.text() ? escape(interpreter, argument) : argument;
    }
    return marked(interpreter, row.run(interpreter, object, arguments));
  }

private:
  static Value marked(Interpreter &interpreter, const Value &value) {
    const Sequence *sequence = value.sequence();
    if (!sequence)
      return interpreter.textLike(Value::markup({}), *value.tracked());
    Values items;
    for (const Value &item : sequence->items)
      items.push_back(interpreter.textLike(Value::markup({}), *item.tracked()));
    return makeSequence(std::move(items), sequence->kind);
  }

  Value object;
  const MethodRow &row;
};

constexpr MethodRow ofNumbers[] = {
    {"real", nullptr},        {"imag", nullptr},      {"numerator", nullptr},
    {"denominator", nullptr}, {"conjugate", nullptr}, {"as_integer_ratio", nullptr},
    {"bit_length", nullptr},  {"bit_count", nullptr}, {"to_bytes", nullptr},
    {"from_bytes", nullptr},  {"hex", nullptr},       {"fromhex", nullptr},
    {"is_integer", nullptr},
};

MethodRows tableOf(const Value &object) {
  if (object.text())
    return textMethods();
  if (object.mapping())
    return dictMethods();
  if (object.number())
    return ofNumbers;
  const Sequence *sequence = object.sequence();
  if (sequence && sequence->kind == Sequence::List)
    return listMethods();
  if (sequence && sequence->indexed())
    return tupleMethods();
  return {};
}
} // namespace

std::optional<Value> findMethod(const Value &object, std::string_view name) {
  MethodRows rows = tableOf(object);
  auto found = std::ranges::find(rows, name, &MethodRow::name);
  if (found == rows.end())
    return std::nullopt;
  if (object.number())
    fail("the attribute '" + std::string(name) + "' of a number is not supported");
  return Value(std::shared_ptr<Object>(std::make_shared<Method>(object, *found)));
}

} // namespace mica::rt::jinja
