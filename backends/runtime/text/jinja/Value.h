// What a template computes with: the values of Python that published templates need. Nothing but a
// namespace changes once it is made, so values are shared freely.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_VALUE_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_VALUE_H

#include "backends/runtime/text/jinja/Budget.h"
#include "backends/runtime/text/jinja/TrackedText.h"

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::rt::jinja {

class Interpreter;
class Value;
using Values = std::vector<Value>;

/// Thrown inside this room only; Template turns it into an Error.
struct Failure {
  std::string message;
  int line = 0; ///< 0: the innermost statement or expression that it passes fills it in.
};
[[noreturn]] void fail(std::string message);

struct Undefined {
  std::string what; ///< Why an operation on it fails: "'x' is undefined".
};
struct None {};
using Text = std::shared_ptr<const TrackedText>;
/// What Jinja2 calls markup: a text that `escape` has made, which is not escaped again.
struct Escaped {
  Text text;
};

/// Containers nest at most so deep, which bounds every recursion over values.
inline constexpr int maxValueDepth = 100;

struct Sequence;
struct Mapping;

/// What is neither data nor a number: macros, functions, bound methods, namespaces, loops.
class Object {
public:
  virtual ~Object() = default;
  /// As Python calls the type in messages.
  virtual std::string_view typeName() const = 0;
  virtual bool callable() const { return false; }
  virtual Value call(Interpreter &interpreter, struct Arguments &arguments);
  virtual std::optional<Value> attribute(Interpreter &interpreter, std::string_view name);
};

class Value {
public:
  using State = std::variant<Undefined, None, bool, int64_t, double, Text, Escaped,
                             std::shared_ptr<const Sequence>, std::shared_ptr<const Mapping>,
                             std::shared_ptr<Object>>;

  Value() : state(None()) {}
  Value(bool value) : state(value) {}
  Value(int64_t value) : state(value) {}
  Value(double value) : state(value) {}
  explicit Value(TrackedText text) : state(std::make_shared<const TrackedText>(std::move(text))) {}
  explicit Value(Text text) : state(std::move(text)) {}
  /// A text that the template itself spells, or this engine.
  Value(const char *text) : Value(own(text)) {}
  static Value own(std::string_view text) {
    return Value(TrackedText::of(std::string(text), /*untrusted=*/false));
  }
  /// Of an escaped text.
  static Value markup(TrackedText text);
  Value(Undefined value) : state(std::move(value)) {}
  Value(std::shared_ptr<const Sequence> value) : state(std::move(value)) {}
  Value(std::shared_ptr<const Mapping> value) : state(std::move(value)) {}
  Value(std::shared_ptr<Object> value) : state(std::move(value)) {}

  bool isUndefined() const { return std::holds_alternative<Undefined>(state); }
  bool isNone() const { return std::holds_alternative<None>(state); }
  const bool *boolean() const { return std::get_if<bool>(&state); }
  const double *real() const { return std::get_if<double>(&state); }
  /// The integer, or a boolean as one.
  std::optional<int64_t> integer() const;
  /// The number, whatever its type.
  std::optional<double> number() const;
  /// The bytes of the text, escaped or not.
  const std::string *text() const;
  /// The text, escaped or not; null: it is none.
  Text tracked() const;
  /// Whether something in it comes from the conversation.
  bool untrusted() const;
  bool escaped() const { return std::holds_alternative<Escaped>(state); }
  const Sequence *sequence() const;
  const Mapping *mapping() const;
  Object *object() const;
  template <typename T> T *as() const { return dynamic_cast<T *>(object()); }
  const Undefined *undefined() const { return std::get_if<Undefined>(&state); }

private:
  State state;
};

/// What a text of its own takes besides its bytes, in values.
inline constexpr uint64_t valuesOfText = 4;

struct Sequence {
  enum Kind {
    List,
    Tuple,
    Range,
    View,     ///< of a mapping: no index
    Generator ///< yields its items once
  } kind = List;
  Values items;
  int depth = 1;
  mutable size_t taken = 0; ///< Items that a generator has yielded.
  bool grouped = false;     ///< What groupby makes: a tuple whose items have names.
  bool untrusted = false;   ///< Something in it comes from the conversation.

  bool indexed() const { return kind <= Range; }
};

struct Mapping {
  std::vector<std::pair<Value, Value>> entries; ///< In the order of insertion, keys differ.
  int depth = 1;
  bool untrusted = false; ///< Something in it comes from the conversation.

  const Value *find(Budget &budget, const Value &key) const;
  const Value *named(Budget &budget, std::string_view key) const;
};

/// Errors: nested too deeply.
Value makeSequence(Values items, Sequence::Kind kind = Sequence::List);
inline Value makeTuple(Values items) { return makeSequence(std::move(items), Sequence::Tuple); }
/// Later entries replace the values of earlier ones with the same key. Errors: nested too deeply, a
/// key that cannot be one.
Value makeMapping(Budget &budget, std::vector<std::pair<Value, Value>> entries);
/// JSON as Python's json module reads it; keys keep their order, and numbers beyond 64 bits become
/// floating. `untrusted`: its texts come from the conversation. Errors: as above.
Value fromJson(const nlohmann::ordered_json &json, bool untrusted = false);
/// The variables that a conversation gives, whose texts are untrusted but for the roles of
/// `messages` that are plain words.
Value fromConversation(const nlohmann::ordered_json &json);

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// The arguments of a built-in function, filter, test or method, matched to the names of its
/// parameters. Errors: too many, unknown, given twice, one of the first `required` missing.
class Parameters {
public:
  Parameters(std::string_view function, const Arguments &arguments,
             std::initializer_list<std::string_view> names, size_t required = 0);
  /// Null where the argument was not given.
  const Value *operator[](size_t index) const { return values[index]; }
  bool flag(size_t index, bool fallback) const;
  int64_t integer(size_t index, int64_t fallback) const;
  std::string text(size_t index, std::string_view fallback) const;
  TrackedText tracked(size_t index, std::string_view fallback) const;

private:
  std::string function;
  std::vector<std::string_view> names;
  std::vector<const Value *> values;
};

/// Errors: there are some.
void expectNoArguments(std::string_view function, const Arguments &arguments);

bool truth(const Value &value);
/// Python's ==.
bool equal(Budget &budget, const Value &a, const Value &b);
/// Python's <. Errors: types that have no order.
bool less(Budget &budget, const Value &a, const Value &b);
/// Whether a value can be a mapping's key.
bool hashable(Budget &budget, const Value &value);
/// As Python calls the value's type.
std::string typeName(const Value &value);

/// str(value). Errors: a value that has no text of its own here, such as a generator.
Text toText(Budget &budget, const Value &value);
/// The text of a value with the signs of HTML as entities; markup as it is.
Value escape(Budget &budget, const Value &value);
/// repr(value).
TrackedText toRepr(Budget &budget, const Value &value);
/// repr of a float.
std::string toRepr(double value);

struct JsonStyle {
  bool ascii = false;
  std::optional<TrackedText> indent;
  TrackedText itemSeparator = {", ", {}}, keySeparator = {": ", {}};
  bool sortKeys = false;
};
/// json.dumps(value). Errors: what JSON cannot hold.
TrackedText toJson(Budget &budget, const Value &value, const JsonStyle &style);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_VALUE_H
