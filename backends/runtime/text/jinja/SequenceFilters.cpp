// Filters on lists and dicts.
#include "backends/runtime/text/jinja/Case.h"
#include "backends/runtime/text/jinja/Characters.h"
#include "backends/runtime/text/jinja/FilterTables.h"
#include "backends/runtime/text/jinja/Methods.h"
#include "backends/runtime/text/jinja/Operators.h"
#include "backends/runtime/text/jinja/Print.h"
#include "backends/runtime/text/jinja/StableSort.h"

namespace mica::rt::jinja {

namespace {
Value generator(Values values) { return makeSequence(std::move(values), Sequence::Generator); }

/// Looks up a path such as "a.b.0" in `value`; null is the value itself.
Value reach(Interpreter &interpreter, const Value &value, const Value *attribute,
            const Value *fallback = nullptr) {
  if (!attribute || attribute->isNone())
    return value;
  if (!attribute->text())
    return interpreter.item(value, *attribute);
  Value current = value;
  std::string_view path = *attribute->text();
  for (bool more = true; more;) {
    size_t dot = path.find('.');
    std::string part(path.substr(0, dot));
    more = dot != path.npos;
    path = more ? path.substr(dot + 1) : path;
    bool number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    if (number && part.size() > 9)
      fail("an attribute's number is too large");
    current =
        interpreter.item(current, number ? Value(int64_t(std::stoll(part))) : Value::own(part));
    if (fallback && !fallback->isNone() && current.isUndefined())
      current = *fallback;
  }
  return current;
}

/// The key for comparisons: strings are folded unless case is significant.
Value keyOf(Interpreter &interpreter, Value value, bool caseCounts) {
  const std::string *text = value.text();
  if (!text || caseCounts)
    return value;
  interpreter.spend(text->size());
  return interpreter.text(interpreter.madeOf(value, toLower(*text)));
}

/// The sort keys; "a,b" is split at commas.
Values sortKeys(Interpreter &interpreter, const Value &value, const Value *attribute,
                bool caseCounts) {
  Values keys;
  const std::string *names = attribute ? attribute->text() : nullptr;
  if (!names)
    return {keyOf(interpreter, reach(interpreter, value, attribute), caseCounts)};
  std::string_view rest = *names;
  for (bool more = true; more;) {
    size_t comma = rest.find(',');
    Value name = Value::own(rest.substr(0, comma));
    keys.push_back(keyOf(interpreter, reach(interpreter, value, &name), caseCounts));
    more = comma != rest.npos;
    rest = more ? rest.substr(comma + 1) : rest;
  }
  return keys;
}

/// Stable, even if reversed.
void sortPairs(Interpreter &interpreter, std::vector<std::pair<Value, Value>> &pairs,
               bool reverse) {
  interpreter.reserveValues(2 * pairs.size());
  stableSort(pairs, [&](const auto &a, const auto &b) {
    return reverse ? less(interpreter, b.first, a.first) : less(interpreter, a.first, b.first);
  });
}

Values secondsOf(std::vector<std::pair<Value, Value>> pairs) {
  Values values;
  for (auto &pair : pairs)
    values.push_back(std::move(pair.second));
  return values;
}

Value sort(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value &item : interpreter.items(value))
    pairs.emplace_back(makeSequence(sortKeys(interpreter, item, given[2], given.flag(1, false))),
                       item);
  sortPairs(interpreter, pairs, given.flag(0, false));
  return makeSequence(secondsOf(std::move(pairs)));
}

/// A group of items with the same key: (grouper, list).
Value groupOf(Value key, Values items) {
  Sequence group = *makeTuple({std::move(key), makeSequence(std::move(items))}).sequence();
  group.grouped = true;
  return std::make_shared<const Sequence>(std::move(group));
}

/// If case is ignored, the key of a group is that of its first item.
Value groupby(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  bool caseCounts = given.flag(2, false);
  std::vector<std::pair<Value, Value>> pairs;
  for (const Value &item : interpreter.items(value))
    pairs.emplace_back(keyOf(interpreter, reach(interpreter, item, given[0], given[1]), caseCounts),
                       item);
  sortPairs(interpreter, pairs, false);
  Values groups, items;
  for (size_t i = 0; i < pairs.size(); ++i) {
    items.push_back(pairs[i].second);
    if (i + 1 < pairs.size() && equal(interpreter, pairs[i].first, pairs[i + 1].first))
      continue;
    Value key = caseCounts ? pairs[i + 1 - items.size()].first
                           : reach(interpreter, items.front(), given[0], given[1]);
    groups.push_back(groupOf(std::move(key), std::exchange(items, {})));
  }
  return makeSequence(std::move(groups));
}

const Mapping &mappingOf(const Value &value, const char *filter) {
  requireDefined(value);
  if (!value.mapping())
    fail(std::string(filter) + " takes a dict, not " + typeName(value));
  return *value.mapping();
}

Value dictsort(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  std::string by = given.text(1, "key");
  if (by != "key" && by != "value")
    fail("dictsort sorts by \"key\" or \"value\"");
  std::vector<std::pair<Value, Value>> pairs;
  for (const auto &[key, entry] : mappingOf(value, "dictsort").entries) {
    interpreter.reserveValues(2 * valuesOfText);
    pairs.emplace_back(keyOf(interpreter, by == "key" ? key : entry, given.flag(0, false)),
                       makeTuple({key, entry}));
  }
  sortPairs(interpreter, pairs, given.flag(2, false));
  return makeSequence(secondsOf(std::move(pairs)));
}

Value items(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("items", arguments);
  if (value.isUndefined())
    return generator({});
  return generator(pairsOf(interpreter, mappingOf(value, "items")));
}

Value length(Interpreter &, const Value &value, const Arguments &arguments) {
  expectNoArguments("length", arguments);
  if (value.isUndefined())
    return int64_t(0);
  if (const std::string *text = value.text())
    return countChars(*text);
  if (const Mapping *mapping = value.mapping())
    return static_cast<int64_t>(mapping->entries.size());
  const Sequence *sequence = value.sequence();
  if (!sequence || sequence->kind == Sequence::Generator)
    fail("a value of type " + typeName(value) + " has no length");
  return static_cast<int64_t>(sequence->items.size());
}

Value first(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("first", arguments);
  if (const Sequence *sequence = value.sequence();
      sequence && sequence->kind == Sequence::Generator && sequence->taken < sequence->items.size())
    return sequence->items[sequence->taken++];
  Values values = interpreter.items(value);
  return values.empty() ? Value(Undefined{"there is no first item"}) : values.front();
}

Value last(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("last", arguments);
  if (const Sequence *sequence = value.sequence();
      sequence && sequence->kind == Sequence::Generator)
    fail("the last item of a generator is not supported; use |list");
  if (value.escaped() && truth(value))
    return interpreter.item(value, Value(int64_t(-1)));
  Values values = interpreter.items(value);
  return values.empty() ? Value(Undefined{"there is no last item"}) : values.back();
}

Value list(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("list", arguments);
  return makeSequence(interpreter.items(value));
}

Value join(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("join", arguments, {"d", "attribute"});
  Text mark = given[0] ? toText(interpreter, *given[0]) : std::make_shared<TrackedText>();
  TrackedText text;
  bool isFirst = true;
  for (const Value &item : interpreter.items(value)) {
    Text piece = toText(interpreter, reach(interpreter, item, given[1]));
    interpreter.reserve(piece->size() + mark->size());
    if (!std::exchange(isFirst, false))
      text.append(*mark);
    text.append(*piece);
  }
  return Value(std::move(text));
}

Value reverse(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  expectNoArguments("reverse", arguments);
  if (Text text = value.tracked()) {
    TrackedText result;
    Chars chars = charsOf(text->bytes);
    for (auto it = chars.rbegin(); it != chars.rend(); ++it)
      result.appendPiece(*text, *it);
    return interpreter.textLike(value, std::move(result));
  }
  Values values = interpreter.items(value);
  std::reverse(values.begin(), values.end());
  bool once = value.sequence() && value.sequence()->kind == Sequence::Generator;
  return makeSequence(std::move(values), once ? Sequence::List : Sequence::Generator);
}

/// A filter or a test by name, with the arguments after the name.
Arguments dropFront(const Arguments &arguments, size_t count) {
  Arguments rest = arguments;
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(count));
  return rest;
}

std::string nameOf(const Arguments &arguments, size_t index) {
  if (arguments.positional.size() <= index || !arguments.positional[index].text())
    fail("the name of a filter or a test is expected as a string");
  return *arguments.positional[index].text();
}

Value map(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Values results;
  // Empty values are accepted, whatever their type.
  if (!truth(value))
    return generator({});
  if (arguments.positional.empty()) {
    Parameters given("map", arguments, {"attribute", "default"}, 1);
    for (const Value &item : interpreter.items(value))
      results.push_back(reach(interpreter, item, given[0], given[1]));
    return generator(std::move(results));
  }
  std::string name = nameOf(arguments, 0);
  Filter filter = findFilter(name);
  if (!filter)
    fail("the filter '" + name + "' is not supported");
  Arguments rest = dropFront(arguments, 1);
  for (const Value &item : interpreter.items(value))
    results.push_back(filter(interpreter, item, rest));
  return generator(std::move(results));
}

/// The items that pass a test, or fail it; `attributed`: the test applies to an attribute.
Value chosen(Interpreter &interpreter, const Value &value, const Arguments &arguments,
             bool attributed, bool wanted) {
  if (!truth(value))
    return generator({});
  size_t used = attributed ? 1 : 0;
  if (attributed && arguments.positional.empty())
    fail("selectattr and rejectattr name an attribute");
  const Value *attribute = attributed ? &arguments.positional[0] : nullptr;
  Test test = nullptr;
  Arguments rest;
  if (arguments.positional.size() > used) {
    std::string name = nameOf(arguments, used);
    test = findTest(name);
    if (!test)
      fail("the test '" + name + "' is not supported");
    rest = dropFront(arguments, used + 1);
  }
  Values results;
  for (const Value &item : interpreter.items(value)) {
    Value tested = reach(interpreter, item, attribute);
    if ((test ? test(interpreter, tested, rest) : truth(tested)) == wanted)
      results.push_back(item);
  }
  return generator(std::move(results));
}
Value select(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return chosen(interpreter, value, arguments, false, true);
}
Value reject(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return chosen(interpreter, value, arguments, false, false);
}
Value selectattr(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return chosen(interpreter, value, arguments, true, true);
}
Value rejectattr(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return chosen(interpreter, value, arguments, true, false);
}

Value unique(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("unique", arguments, {"case_sensitive", "attribute"});
  Values seen, results;
  for (const Value &item : interpreter.items(value)) {
    Value key = keyOf(interpreter, reach(interpreter, item, given[1]), given.flag(0, false));
    if (!hashable(interpreter, key))
      fail("unhashable type: '" + typeName(key) + "'");
    if (std::any_of(seen.begin(), seen.end(),
                    [&](const Value &other) { return equal(interpreter, other, key); }))
      continue;
    seen.push_back(key);
    results.push_back(item);
  }
  return generator(std::move(results));
}

Value extreme(Interpreter &interpreter, const Value &value, const Arguments &arguments,
              bool largest) {
  Parameters given("min and max", arguments, {"case_sensitive", "attribute"});
  Values values = interpreter.items(value);
  if (values.empty())
    return Undefined{"the sequence is empty"};
  auto key = [&](const Value &item) {
    return keyOf(interpreter, reach(interpreter, item, given[1]), given.flag(0, false));
  };
  Value best = values[0], bestKey = key(best);
  for (size_t i = 1; i < values.size(); ++i) {
    Value other = key(values[i]);
    if (largest ? less(interpreter, bestKey, other) : less(interpreter, other, bestKey)) {
      best = values[i];
      bestKey = other;
    }
  }
  return best;
}
Value min(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return extreme(interpreter, value, arguments, false);
}
Value max(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  return extreme(interpreter, value, arguments, true);
}

Value sum(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("sum", arguments, {"attribute", "start"});
  Value total = given[1] ? *given[1] : Value(int64_t(0));
  if (total.text())
    fail("sum does not join strings");
  for (const Value &item : interpreter.items(value))
    total = combine(interpreter, "+", total, reach(interpreter, item, given[0]));
  return total;
}

int64_t partsOf(const Parameters &given, const char *filter) {
  int64_t count = given.integer(0, 0);
  if (count < 1 || count > 100'000)
    fail(std::string(filter) + " takes a count from 1 to 100000");
  return count;
}

Value batch(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("batch", arguments, {"linecount", "fill_with"}, 1);
  auto count = static_cast<size_t>(partsOf(given, "batch"));
  bool fills = given[1] && !given[1]->isNone();
  Values rows, row;
  for (Value &item : interpreter.items(value)) {
    if (row.size() == count)
      rows.push_back(makeSequence(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (row.empty())
    return generator(std::move(rows));
  interpreter.spend(count);
  interpreter.reserveValues(count);
  while (fills && row.size() < count)
    row.push_back(*given[1]);
  rows.push_back(makeSequence(std::move(row)));
  return generator(std::move(rows));
}

Value slice(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  Parameters given("slice", arguments, {"slices", "fill_with"}, 1);
  auto count = static_cast<size_t>(partsOf(given, "slice"));
  Values source = interpreter.items(value), parts;
  interpreter.spend(count);
  interpreter.reserveValues(2 * count);
  size_t each = source.size() / count, more = source.size() % count, begin = 0;
  for (size_t i = 0; i < count; ++i) {
    size_t end = begin + each + (i < more ? 1 : 0);
    Values part(source.begin() + static_cast<std::ptrdiff_t>(begin),
                source.begin() + static_cast<std::ptrdiff_t>(end));
    if (given[1] && !given[1]->isNone() && i >= more)
      part.push_back(*given[1]);
    parts.push_back(makeSequence(std::move(part)));
    begin = end;
  }
  return generator(std::move(parts));
}

Value fallback(Interpreter &, const Value &value, const Arguments &arguments) {
  Parameters given("default", arguments, {"default_value", "boolean"});
  bool missing = value.isUndefined() || (given.flag(1, false) && !truth(value));
  return !missing ? value : given[0] ? *given[0] : Value("");
}

Value attr(Interpreter &interpreter, const Value &value, const Arguments &arguments) {
  std::string name = Parameters("attr", arguments, {"name"}, 1).text(0, "");
  if (value.mapping() && !findMethod(value, name))
    return Undefined{"a dict has no attribute '" + name + "'"};
  return interpreter.attribute(value, name);
}
} // namespace

FilterRows sequenceFilters() {
  static constexpr FilterRow rows[] = {
      {"sort", sort},
      {"dictsort", dictsort},
      {"groupby", groupby},
      {"items", items},
      {"length", length},
      {"count", length},
      {"first", first},
      {"last", last},
      {"list", list},
      {"join", join},
      {"reverse", reverse},
      {"map", map},
      {"select", select},
      {"reject", reject},
      {"selectattr", selectattr},
      {"rejectattr", rejectattr},
      {"unique", unique},
      {"min", min},
      {"max", max},
      {"sum", sum},
      {"batch", batch},
      {"slice", slice},
      {"default", fallback},
      {"d", fallback},
      {"attr", attr},
  };
  return rows;
}

} // namespace mica::rt::jinja
