// The methods of strings, dicts and lists.
#include "backends/cpu/runtime/jinja/Characters.h"
#include "backends/cpu/runtime/jinja/Interpreter.h"

#include <algorithm>

namespace mica::rt::jinja {

namespace {
using Run = Value (*)(Interpreter &, const Value &, const Arguments &);

class Method final : public Object {
public:
  Method(Value object, Run run, std::string_view name)
      : object(std::move(object)), run(run), name(name) {}
  std::string_view typeName() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Interpreter &interpreter, Arguments &arguments) override {
    if (!run)
      fail("the method '" + name + "' is not supported");
    if (const std::string *text = object.text())
      interpreter.spend(text->size() / 64);
    return run(interpreter, object, arguments);
  }

private:
  Value object;
  Run run;
  std::string name;
};

std::string_view textOf(const Value &object) { return *object.text(); }

void takesNothing(const Arguments &arguments) { Parameters("the method", arguments, {}); }

Value pieces(Interpreter &interpreter, const std::vector<std::string_view> &parts) {
  Values values;
  for (std::string_view part : parts)
    values.push_back(interpreter.text(std::string(part)));
  interpreter.spend(values.size());
  return makeSequence(std::move(values));
}

Value upper(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  return interpreter.text(toUpper(textOf(object)));
}

Value lower(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  return interpreter.text(toLower(textOf(object)));
}

Value capitalize(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  return interpreter.text(capitalized(textOf(object)));
}

Value title(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  std::string text = toLower(textOf(object));
  bool within = false;
  for (char &c : text) {
    bool letter = c >= 'a' && c <= 'z';
    if (letter && !within)
      c = static_cast<char>(c - 32);
    within = letter;
  }
  return interpreter.text(std::move(text));
}

Value stripEnds(Interpreter &interpreter, const Value &object, const Arguments &arguments,
                bool left, bool right) {
  Parameters given("strip", arguments, {"chars"});
  const std::string *set = given[0] ? given[0]->text() : nullptr;
  if (given[0] && !set && !given[0]->isNone())
    fail("strip takes a string");
  interpreter.spend(textOf(object).size() / 8);
  return interpreter.text(std::string(stripped(textOf(object), set, left, right)));
}
Value strip(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return stripEnds(interpreter, object, arguments, true, true);
}
Value lstrip(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return stripEnds(interpreter, object, arguments, true, false);
}
Value rstrip(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return stripEnds(interpreter, object, arguments, false, true);
}

/// Words between white space, from one end.
std::vector<std::string_view> words(std::string_view text, int64_t most, bool fromRight) {
  std::vector<std::string_view> result;
  text = stripped(text, nullptr, true, true);
  while (!text.empty()) {
    std::vector<std::string_view> chars = charsOf(text);
    size_t size = 0;
    if (static_cast<int64_t>(result.size()) == most) {
      result.push_back(text);
      break;
    }
    if (fromRight) {
      for (auto it = chars.rbegin(); it != chars.rend() && !isSpace(*it); ++it)
        size += it->size();
      result.push_back(text.substr(text.size() - size));
      text.remove_suffix(size);
      text = stripped(text, nullptr, false, true);
    } else {
      for (auto it = chars.begin(); it != chars.end() && !isSpace(*it); ++it)
        size += it->size();
      result.push_back(text.substr(0, size));
      text.remove_prefix(size);
      text = stripped(text, nullptr, true, false);
    }
  }
  if (fromRight)
    std::reverse(result.begin(), result.end());
  return result;
}

std::vector<std::string_view> separated(std::string_view text, std::string_view mark, int64_t most,
                                        bool fromRight) {
  std::vector<std::string_view> result;
  for (;;) {
    size_t at = static_cast<int64_t>(result.size()) == most ? text.npos
                : fromRight                                 ? text.rfind(mark)
                                                            : text.find(mark);
    if (at == text.npos)
      break;
    result.push_back(fromRight ? text.substr(at + mark.size()) : text.substr(0, at));
    text = fromRight ? text.substr(0, at) : text.substr(at + mark.size());
  }
  result.push_back(text);
  if (fromRight)
    std::reverse(result.begin(), result.end());
  return result;
}

Value splitFrom(Interpreter &interpreter, const Value &object, const Arguments &arguments,
                bool fromRight) {
  Parameters given("split", arguments, {"sep", "maxsplit"});
  int64_t most = given.integer(1, -1);
  std::string_view text = textOf(object);
  if (!given[0] || given[0]->isNone()) {
    // Each word looks at the whole rest.
    std::vector<std::string_view> parts;
    interpreter.spend(text.size());
    parts = words(text, most, fromRight);
    return pieces(interpreter, parts);
  }
  std::string mark = given.text(0, "");
  if (mark.empty())
    fail("the separator of split is empty");
  return pieces(interpreter, separated(text, mark, most, fromRight));
}
Value split(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return splitFrom(interpreter, object, arguments, false);
}
Value rsplit(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return splitFrom(interpreter, object, arguments, true);
}

Value splitlines(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  bool keep = Parameters("splitlines", arguments, {"keepends"}).flag(0, false);
  return pieces(interpreter, linesOf(textOf(object), keep));
}

Value partitionAt(Interpreter &interpreter, const Value &object, const Arguments &arguments,
                  bool last) {
  std::string mark = Parameters("partition", arguments, {"sep"}, 1).text(0, "");
  if (mark.empty())
    fail("the separator of partition is empty");
  std::string_view text = textOf(object);
  size_t at = last ? text.rfind(mark) : text.find(mark);
  Values parts = {Value(""), Value(""), Value("")};
  if (at == text.npos) {
    parts[last ? 2 : 0] = object;
  } else {
    parts = {Value(std::string(text.substr(0, at))), Value(mark),
             Value(std::string(text.substr(at + mark.size())))};
  }
  interpreter.reserve(text.size());
  return makeTuple(std::move(parts));
}
Value partition(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return partitionAt(interpreter, object, arguments, false);
}
Value rpartition(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return partitionAt(interpreter, object, arguments, true);
}

bool hasEnd(std::string_view text, const Value &end, bool front) {
  if (const std::string *part = end.text())
    return front ? text.starts_with(*part) : text.ends_with(*part);
  const Sequence *options = end.sequence();
  if (!options || options->kind != Sequence::Tuple)
    fail("startswith and endswith take a string or a tuple of them");
  return std::any_of(options->items.begin(), options->items.end(), [&](const Value &option) {
    if (!option.text())
      fail("startswith and endswith take a string or a tuple of them");
    return hasEnd(text, option, front);
  });
}
Value startswith(Interpreter &, const Value &object, const Arguments &arguments) {
  return hasEnd(textOf(object), *Parameters("startswith", arguments, {"prefix"}, 1)[0], true);
}
Value endswith(Interpreter &, const Value &object, const Arguments &arguments) {
  return hasEnd(textOf(object), *Parameters("endswith", arguments, {"suffix"}, 1)[0], false);
}
Value removeprefix(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  std::string part = Parameters("removeprefix", arguments, {"prefix"}, 1).text(0, "");
  std::string_view text = textOf(object);
  return interpreter.text(std::string(text.substr(text.starts_with(part) ? part.size() : 0)));
}
Value removesuffix(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  std::string part = Parameters("removesuffix", arguments, {"suffix"}, 1).text(0, "");
  std::string_view text = textOf(object);
  return interpreter.text(
      std::string(text.substr(0, text.size() - (text.ends_with(part) ? part.size() : 0))));
}

Value replace(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("replace", arguments, {"old", "new", "count"}, 2);
  return interpreter.text(replaced(interpreter, textOf(object), given.text(0, ""),
                                   given.text(1, ""), given.integer(2, -1)));
}

/// Where `part` stands, in code points; -1: nowhere.
int64_t placeOf(const Value &object, const Arguments &arguments, bool last) {
  Parameters given("find", arguments, {"sub", "start"}, 1);
  std::string part = given.text(0, "");
  std::string_view text = textOf(object);
  int64_t size = countChars(text), start = given.integer(1, 0);
  start = std::max<int64_t>(start < 0 ? start + size : start, 0);
  if (start > size)
    return -1;
  size_t from = offsetOf(text, start);
  size_t at = last ? text.rfind(part) : text.find(part, from);
  return at == text.npos || at < from ? -1 : countChars(text.substr(0, at));
}
Value find(Interpreter &, const Value &object, const Arguments &arguments) {
  return placeOf(object, arguments, false);
}
Value rfind(Interpreter &, const Value &object, const Arguments &arguments) {
  return placeOf(object, arguments, true);
}
Value indexOf(Interpreter &, const Value &object, const Arguments &arguments) {
  int64_t place = placeOf(object, arguments, false);
  if (place < 0)
    fail("index does not find its string");
  return place;
}

Value count(Interpreter &, const Value &object, const Arguments &arguments) {
  std::string part = Parameters("count", arguments, {"sub"}, 1).text(0, "");
  std::string_view text = textOf(object);
  if (part.empty())
    return countChars(text) + 1;
  int64_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++found;
  return found;
}

Value join(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("join", arguments, {"iterable"}, 1);
  requireDefined(*given[0]);
  std::string text;
  bool first = true;
  for (const Value &item : interpreter.items(*given[0])) {
    if (!item.text())
      fail("join takes strings, not " + typeName(item));
    interpreter.reserve(item.text()->size() + textOf(object).size());
    text += (std::exchange(first, false) ? "" : std::string(textOf(object))) + *item.text();
  }
  return text;
}

Value format(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return interpreter.text(formatBraces(interpreter, *object.text(), arguments));
}

/// Whether all characters, and at least one, are of a kind.
template <bool (*isOne)(std::string_view)>
Value all(Interpreter &, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  std::vector<std::string_view> chars = charsOf(textOf(object));
  return !chars.empty() && std::all_of(chars.begin(), chars.end(), isOne);
}
bool isDigitChar(std::string_view character) {
  if (isOtherNumber(character))
    fail("whether '" + std::string(character) + "' is a digit is not known here");
  return isDecimal(character);
}
bool isAlnumChar(std::string_view character) {
  return isLetter(character) || isDecimal(character) || isOtherNumber(character);
}
Value isLowerText(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return findTest("lower")(interpreter, object, arguments);
}
Value isUpperText(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return findTest("upper")(interpreter, object, arguments);
}

Value pad(Interpreter &interpreter, const Value &object, const Arguments &arguments, bool right) {
  Parameters given("ljust and rjust", arguments, {"width", "fillchar"}, 1);
  std::string fill = given.text(1, " "), text(textOf(object));
  if (countChars(fill) != 1)
    fail("the fill of ljust and rjust is one character");
  int64_t missing = std::max<int64_t>(given.integer(0, 0) - countChars(text), 0);
  interpreter.reserve(static_cast<uint64_t>(missing) * fill.size());
  std::string padding;
  for (; missing > 0; --missing)
    padding += fill;
  return interpreter.text(right ? padding + text : text + padding);
}
Value ljust(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return pad(interpreter, object, arguments, false);
}
Value rjust(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  return pad(interpreter, object, arguments, true);
}

Value view(Values values) { return makeSequence(std::move(values), Sequence::View); }

Value items(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  Values values;
  for (const auto &[key, value] : object.mapping()->entries)
    values.push_back(makeTuple({key, value}));
  interpreter.spend(values.size());
  return view(std::move(values));
}
Value keys(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  return view(interpreter.items(object));
}
Value values(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  takesNothing(arguments);
  Values all;
  for (const auto &entry : object.mapping()->entries)
    all.push_back(entry.second);
  interpreter.spend(all.size());
  return view(std::move(all));
}
Value get(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  Parameters given("get", arguments, {"key", "default"}, 1);
  if (!hashable(*given[0]))
    fail("unhashable type: '" + typeName(*given[0]) + "'");
  interpreter.spend(object.mapping()->entries.size() / 8);
  if (const Value *found = object.mapping()->find(*given[0]))
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
  return static_cast<int64_t>(std::count_if(
      values.begin(), values.end(), [&](const Value &value) { return equal(value, wanted); }));
}
Value indexOfItem(Interpreter &interpreter, const Value &object, const Arguments &arguments) {
  const Value &wanted = *Parameters("index", arguments, {"value"}, 1)[0];
  Values values = interpreter.items(object);
  auto found = std::find_if(values.begin(), values.end(),
                            [&](const Value &value) { return equal(value, wanted); });
  if (found == values.end())
    fail("index does not find its value");
  return static_cast<int64_t>(found - values.begin());
}

using Table = std::pair<std::string_view, Run>;
// Where there is no function, Python has a method that is not supported or changes its object.
constexpr Table ofStrings[] = {
    {"upper", upper},
    {"lower", lower},
    {"capitalize", capitalize},
    {"title", title},
    {"strip", strip},
    {"lstrip", lstrip},
    {"rstrip", rstrip},
    {"split", split},
    {"rsplit", rsplit},
    {"splitlines", splitlines},
    {"partition", partition},
    {"rpartition", rpartition},
    {"startswith", startswith},
    {"endswith", endswith},
    {"removeprefix", removeprefix},
    {"removesuffix", removesuffix},
    {"replace", replace},
    {"find", find},
    {"rfind", rfind},
    {"index", indexOf},
    {"count", count},
    {"join", join},
    {"format", format},
    {"isdigit", all<isDigitChar>},
    {"isdecimal", all<isDecimal>},
    {"isalpha", all<isLetter>},
    {"isalnum", all<isAlnumChar>},
    {"isspace", all<isSpace>},
    {"islower", isLowerText},
    {"isupper", isUpperText},
    {"ljust", ljust},
    {"rjust", rjust},
    {"casefold", nullptr},
    {"center", nullptr},
    {"encode", nullptr},
    {"expandtabs", nullptr},
    {"format_map", nullptr},
    {"isascii", nullptr},
    {"isidentifier", nullptr},
    {"isnumeric", nullptr},
    {"isprintable", nullptr},
    {"istitle", nullptr},
    {"maketrans", nullptr},
    {"rindex", nullptr},
    {"swapcase", nullptr},
    {"translate", nullptr},
    {"zfill", nullptr},
};
constexpr Table ofDicts[] = {
    {"items", items},     {"keys", keys},          {"values", values},    {"get", get},
    {"copy", copy},       {"clear", nullptr},      {"fromkeys", nullptr}, {"pop", nullptr},
    {"popitem", nullptr}, {"setdefault", nullptr}, {"update", nullptr},
};
constexpr Table ofLists[] = {
    {"count", countItems}, {"index", indexOfItem}, {"append", nullptr}, {"clear", nullptr},
    {"copy", nullptr},     {"extend", nullptr},    {"insert", nullptr}, {"pop", nullptr},
    {"remove", nullptr},   {"reverse", nullptr},   {"sort", nullptr},
};
constexpr Table ofTuples[] = {{"count", countItems}, {"index", indexOfItem}};
constexpr Table ofNumbers[] = {
    {"real", nullptr},        {"imag", nullptr},      {"numerator", nullptr},
    {"denominator", nullptr}, {"conjugate", nullptr}, {"as_integer_ratio", nullptr},
    {"bit_length", nullptr},  {"bit_count", nullptr}, {"to_bytes", nullptr},
    {"from_bytes", nullptr},  {"hex", nullptr},       {"fromhex", nullptr},
    {"is_integer", nullptr},
};

std::pair<const Table *, const Table *> tableOf(const Value &object) {
  if (object.text())
    return {std::begin(ofStrings), std::end(ofStrings)};
  if (object.mapping())
    return {std::begin(ofDicts), std::end(ofDicts)};
  if (object.number())
    return {std::begin(ofNumbers), std::end(ofNumbers)};
  const Sequence *sequence = object.sequence();
  if (sequence && sequence->kind == Sequence::List)
    return {std::begin(ofLists), std::end(ofLists)};
  if (sequence && sequence->indexed())
    return {std::begin(ofTuples), std::end(ofTuples)};
  return {nullptr, nullptr};
}
} // namespace

std::optional<Value> findMethod(const Value &object, std::string_view name) {
  auto [begin, end] = tableOf(object);
  auto found = std::find_if(begin, end, [&](const Table &row) { return row.first == name; });
  if (found == end)
    return std::nullopt;
  if (object.number())
    fail("the attribute '" + std::string(name) + "' of a number is not supported");
  return Value(std::shared_ptr<Object>(std::make_shared<Method>(object, found->second, name)));
}

} // namespace mica::rt::jinja
