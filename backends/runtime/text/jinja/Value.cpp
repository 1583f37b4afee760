#include "backends/runtime/text/jinja/Value.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

namespace mica::rt::jinja {

Value Object::call(Interpreter &interpreter, Arguments &arguments) {
  fail("'" + std::string(typeName()) + "' object is not callable");
}

std::optional<Value> Object::attribute(Interpreter &interpreter, std::string_view name) {
  return std::nullopt;
}

std::optional<int64_t> Value::integer() const {
  if (auto *value = std::get_if<int64_t>(&state))
    return *value;
  if (auto *value = boolean())
    return *value;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (auto *value = real())
    return *value;
  if (auto value = integer())
    return static_cast<double>(*value);
  return std::nullopt;
}

Value Value::markup(TrackedText text) {
  Value value;
  value.state = Escaped{std::make_shared<const TrackedText>(std::move(text))};
  return value;
}

const std::string *Value::text() const {
  if (auto *escaped = std::get_if<Escaped>(&state))
    return &escaped->text->bytes;
  auto *value = std::get_if<Text>(&state);
  return value ? &(*value)->bytes : nullptr;
}

Text Value::tracked() const {
  if (auto *escaped = std::get_if<Escaped>(&state))
    return escaped->text;
  auto *value = std::get_if<Text>(&state);
  return value ? *value : nullptr;
}

bool Value::untrusted() const {
  if (const Sequence *items = sequence())
    return items->untrusted;
  if (const Mapping *entries = mapping())
    return entries->untrusted;
  Text own = tracked();
  return own && own->tracked();
}

const Sequence *Value::sequence() const {
  auto *value = std::get_if<std::shared_ptr<const Sequence>>(&state);
  return value ? value->get() : nullptr;
}

const Mapping *Value::mapping() const {
  auto *value = std::get_if<std::shared_ptr<const Mapping>>(&state);
  return value ? value->get() : nullptr;
}

Object *Value::object() const {
  auto *value = std::get_if<std::shared_ptr<Object>>(&state);
  return value ? value->get() : nullptr;
}

const Value *Mapping::find(Budget &budget, const Value &key) const {
  for (const auto &entry : entries)
    if (equal(budget, entry.first, key))
      return &entry.second;
  return nullptr;
}

/// Whether two texts are equal; most differ in length.
static bool sameText(Budget &budget, std::string_view a, std::string_view b) {
  if (a.size() != b.size())
    return false;
  budget.spend(a.size() / 64);
  return a == b;
}

const Value *Mapping::named(Budget &budget, std::string_view key) const {
  budget.spend(entries.size() / 8);
  for (const auto &entry : entries)
    if (const std::string *text = entry.first.text(); text && sameText(budget, *text, key))
      return &entry.second;
  return nullptr;
}

static int depthOf(const Value &value) {
  if (const Sequence *sequence = value.sequence())
    return sequence->depth;
  if (const Mapping *mapping = value.mapping())
    return mapping->depth;
  return 0;
}

static int checkedDepth(int inner) {
  if (inner >= maxValueDepth)
    fail("values are nested more than " + std::to_string(maxValueDepth) + " levels deep");
  return inner + 1;
}

Value makeSequence(Values items, Sequence::Kind kind) {
  int depth = 0;
  bool untrusted = false;
  for (const Value &item : items) {
    depth = std::max(depth, depthOf(item));
    untrusted |= item.untrusted();
  }
  Sequence sequence{kind, std::move(items), checkedDepth(depth)};
  sequence.untrusted = untrusted;
  return std::make_shared<const Sequence>(std::move(sequence));
}

static Value makeDistinct(std::vector<std::pair<Value, Value>> entries) {
  int depth = 0;
  bool untrusted = false;
  for (const auto &[key, value] : entries) {
    depth = std::max({depth, depthOf(key), depthOf(value)});
    untrusted |= key.untrusted() || value.untrusted();
  }
  return std::make_shared<const Mapping>(
      Mapping{std::move(entries), checkedDepth(depth), untrusted});
}

Value makeMapping(Budget &budget, std::vector<std::pair<Value, Value>> entries) {
  budget.reserveValues(2 * entries.size());
  std::vector<std::pair<Value, Value>> distinct;
  for (auto &entry : entries) {
    if (!hashable(budget, entry.first))
      fail("unhashable type: '" + typeName(entry.first) + "'");
    auto same = std::find_if(distinct.begin(), distinct.end(), [&](const auto &other) {
      return equal(budget, other.first, entry.first);
    });
    if (same == distinct.end())
      distinct.push_back(std::move(entry));
    else
      same->second = std::move(entry.second);
  }
  return makeDistinct(std::move(distinct));
}

Value fromJson(const nlohmann::ordered_json &json, bool untrusted) {
  using Type = nlohmann::ordered_json::value_t;
  switch (json.type()) {
  case Type::boolean:
    return json.get<bool>();
  case Type::number_unsigned:
    if (json.get<uint64_t>() > uint64_t(std::numeric_limits<int64_t>::max()))
      return json.get<double>();
    return json.get<int64_t>();
  case Type::number_integer:
    return json.get<int64_t>();
  case Type::number_float:
    return json.get<double>();
  case Type::string:
    return Value(TrackedText::of(json.get<std::string>(), untrusted));
  case Type::array: {
    Values items;
    for (const auto &item : json)
      items.push_back(fromJson(item, untrusted));
    return makeSequence(std::move(items));
  }
  case Type::object: {
    std::vector<std::pair<Value, Value>> entries;
    for (const auto &[key, value] : json.items())
      entries.emplace_back(Value(TrackedText::of(key, untrusted)), fromJson(value, untrusted));
    return makeDistinct(std::move(entries));
  }
  default:
    return {};
  }
}

/// A word such as "user" or "tool_response", which is not a special token by itself.
static bool isPlainWord(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
  });
}

static Value messageFromJson(const nlohmann::ordered_json &message) {
  if (!message.is_object())
    return fromJson(message, /*untrusted=*/true);
  std::vector<std::pair<Value, Value>> entries;
  for (const auto &[key, value] : message.items()) {
    bool word =
        key == "role" && value.is_string() && isPlainWord(value.get_ref<const std::string &>());
    entries.emplace_back(Value(TrackedText::of(key, /*untrusted=*/true)), fromJson(value, !word));
  }
  return makeDistinct(std::move(entries));
}

Value fromConversation(const nlohmann::ordered_json &json) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto &[name, value] : json.items()) {
    if (name != "messages" || !value.is_array()) {
      entries.emplace_back(Value::own(name), fromJson(value, /*untrusted=*/true));
      continue;
    }
    Values messages;
    for (const auto &message : value)
      messages.push_back(messageFromJson(message));
    entries.emplace_back(Value::own(name), makeSequence(std::move(messages)));
  }
  return makeDistinct(std::move(entries));
}

Parameters::Parameters(std::string_view function, const Arguments &arguments,
                       std::initializer_list<std::string_view> names, size_t required)
    : function(function), names(names), values(names.size()) {
  if (arguments.positional.size() > values.size())
    fail(this->function + " takes at most " + std::to_string(values.size()) + " arguments");
  for (size_t i = 0; i < arguments.positional.size(); ++i)
    values[i] = &arguments.positional[i];
  for (const auto &[name, value] : arguments.named) {
    auto found = std::find(this->names.begin(), this->names.end(), name);
    if (found == this->names.end())
      fail(this->function + " has no parameter '" + name + "'");
    const Value *&slot = values[static_cast<size_t>(found - this->names.begin())];
    if (slot)
      fail(this->function + " has two values for '" + name + "'");
    slot = &value;
  }
  for (size_t i = 0; i < required; ++i)
    if (!values[i])
      fail(this->function + " is missing its argument '" + std::string(this->names[i]) + "'");
}

void expectNoArguments(std::string_view function, const Arguments &arguments) {
  const Parameters none(function, arguments, {});
}

bool Parameters::flag(size_t index, bool fallback) const {
  return values[index] ? truth(*values[index]) : fallback;
}

int64_t Parameters::integer(size_t index, int64_t fallback) const {
  if (!values[index])
    return fallback;
  auto number = values[index]->integer();
  if (!number)
    fail("'" + std::string(names[index]) + "' of " + function + " is not an integer");
  return *number;
}

std::string Parameters::text(size_t index, std::string_view fallback) const {
  return tracked(index, fallback).bytes;
}

TrackedText Parameters::tracked(size_t index, std::string_view fallback) const {
  if (!values[index])
    return TrackedText::of(std::string(fallback), /*untrusted=*/false);
  Text text = values[index]->tracked();
  if (!text)
    fail("'" + std::string(names[index]) + "' of " + function + " is not a string");
  return *text;
}

bool truth(const Value &value) {
  if (auto number = value.number())
    return *number != 0;
  if (const std::string *text = value.text())
    return !text->empty();
  if (const Sequence *sequence = value.sequence())
    return sequence->kind == Sequence::Generator || !sequence->items.empty();
  if (const Mapping *mapping = value.mapping())
    return !mapping->entries.empty();
  return value.object() != nullptr;
}

/// The sign of a - b for two numbers, exact as in Python.
static long double difference(const Value &a, const Value &b) {
  auto wide = [](const Value &value) {
    auto integer = value.integer();
    return integer ? static_cast<long double>(*integer) : static_cast<long double>(*value.real());
  };
  long double x = wide(a), y = wide(b);
  return x == y ? 0 : x - y;
}

static bool equalItems(Budget &budget, const Values &a, const Values &b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](const Value &x, const Value &y) { return equal(budget, x, y); });
}

static bool equalEntries(Budget &budget, const Mapping &a, const Mapping &b) {
  if (a.entries.size() != b.entries.size())
    return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto &entry) {
    const Value *other = b.find(budget, entry.first);
    return other && equal(budget, entry.second, *other);
  });
}

bool equal(Budget &budget, const Value &a, const Value &b) {
  budget.spend(1);
  if (a.number() && b.number())
    return difference(a, b) == 0;
  if (const std::string *text = a.text())
    return b.text() && sameText(budget, *text, *b.text());
  if (const Sequence *sequence = a.sequence()) {
    const Sequence *other = b.sequence();
    if (!other || sequence->kind != other->kind)
      return false;
    return sequence == other ||
           (sequence->indexed() && equalItems(budget, sequence->items, other->items));
  }
  if (const Mapping *mapping = a.mapping())
    return b.mapping() && equalEntries(budget, *mapping, *b.mapping());
  if (const Object *object = a.object())
    return object == b.object();
  return (a.isNone() && b.isNone()) || (a.isUndefined() && b.isUndefined());
}

bool less(Budget &budget, const Value &a, const Value &b) {
  budget.spend(1);
  if (a.number() && b.number())
    return difference(a, b) < 0;
  // The byte order of UTF-8 is the order of code points.
  if (a.text() && b.text()) {
    budget.spend(std::min(a.text()->size(), b.text()->size()) / 64);
    return *a.text() < *b.text();
  }
  const Sequence *left = a.sequence(), *right = b.sequence();
  if (left && right && left->kind == right->kind && left->kind <= Sequence::Tuple) {
    size_t shared = std::min(left->items.size(), right->items.size());
    for (size_t i = 0; i < shared; ++i)
      if (!equal(budget, left->items[i], right->items[i]))
        return less(budget, left->items[i], right->items[i]);
    return left->items.size() < right->items.size();
  }
  for (const Value *value : {&a, &b})
    if (const Undefined *undefined = value->undefined())
      fail(undefined->what);
  fail("'" + typeName(a) + "' and '" + typeName(b) + "' have no order");
}

bool hashable(Budget &budget, const Value &value) {
  budget.spend(1);
  if (value.mapping())
    return false;
  const Sequence *sequence = value.sequence();
  if (!sequence || sequence->kind != Sequence::Tuple)
    return !sequence || sequence->kind != Sequence::List;
  return std::all_of(sequence->items.begin(), sequence->items.end(),
                     [&](const Value &item) { return hashable(budget, item); });
}

std::string typeName(const Value &value) {
  if (value.isUndefined())
    return "Undefined";
  if (value.boolean())
    return "bool";
  if (value.integer())
    return "int";
  if (value.real())
    return "float";
  if (value.text())
    return value.escaped() ? "Markup" : "str";
  if (const Sequence *sequence = value.sequence()) {
    constexpr const char *names[] = {"list", "tuple", "range", "dict view", "generator"};
    return names[sequence->kind];
  }
  if (value.mapping())
    return "dict";
  if (const Object *object = value.object())
    return std::string(object->typeName());
  return "NoneType";
}

} // namespace mica::rt::jinja
