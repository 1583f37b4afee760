// The values of a template: those of Python that published templates need. Only namespaces are
// mutable, so all other values are shared.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_VALUE_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_VALUE_H

#include "backends/runtime/text/jinja/Budget.h"
#include "backends/runtime/text/jinja/Failure.h"
#include "backends/runtime/text/jinja/TrackedText.h"

#include <algorithm>
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

struct Undefined {
  std::string what; ///< reason why operations on it fail: "'x' is undefined"
};
struct None {};
using Text = std::shared_ptr<const TrackedText>;
/// Markup, in Jinja2's words: text returned by `escape`, which is not escaped again.
struct Escaped {
  Text text;
};

/// The maximum nesting of containers, which bounds every recursion over values.
inline constexpr int maxValueDepth = 100;

struct Sequence;
struct Mapping;

/// Macros, functions, bound methods, namespaces and loops.
class Object {
public:
  virtual ~Object() = default;
  /// The name of the type in Python's messages.
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
  /// A text from the template itself, or from this engine.
  Value(const char *text) : Value(own(text)) {}
  static Value own(std::string_view text) {
    return Value(TrackedText::of(std::string(text), /*untrusted=*/false));
  }
  /// An escaped text.
  static Value markup(TrackedText text);
  Value(Undefined value) : state(std::move(value)) {}
  Value(std::shared_ptr<const Sequence> value) : state(std::move(value)) {}
  Value(std::shared_ptr<const Mapping> value) : state(std::move(value)) {}
  Value(std::shared_ptr<Object> value) : state(std::move(value)) {}

  bool isUndefined() const { return std::holds_alternative<Undefined>(state); }
  bool isNone() const { return std::holds_alternative<None>(state); }
  const bool *boolean() const { return std::get_if<bool>(&state); }
  const double *real() const { return std::get_if<double>(&state); }
  /// The integer, or a boolean as an integer.
  std::optional<int64_t> integer() const;
  /// The number, of any type.
  std::optional<double> number() const;
  /// The bytes of the text, escaped or not.
  const std::string *text() const;
  /// The text, escaped or not; null: not a text.
  Text tracked() const;
  /// Whether any part comes from the conversation.
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

inline void Budget::reserveValues(uint64_t count) {
  reserve(std::min(count, limits.madeBytes) * sizeof(Value));
}

/// The cost of a text besides its bytes, in values.
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
  bool grouped = false;     ///< a result of groupby: a tuple with named items
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

/// Errors: nested too deep.
Value makeSequence(Values items, Sequence::Kind kind = Sequence::List);
inline Value makeTuple(Values items) { return makeSequence(std::move(items), Sequence::Tuple); }
/// Later entries replace earlier ones with the same key. Errors: nested too deep, an invalid
/// key.
Value makeMapping(Budget &budget, std::vector<std::pair<Value, Value>> entries);
/// Reads JSON like Python's json module; keys keep their order, and integers beyond 64 bits become
/// floats. `untrusted`: its texts come from the conversation. Errors: as above.
Value fromJson(const nlohmann::ordered_json &json, bool untrusted = false);
/// The variables of a conversation, whose texts are untrusted, except roles of `messages` that are
/// plain words.
Value fromConversation(const nlohmann::ordered_json &json);

struct Arguments {
  Values positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// The arguments of a built-in function, filter, test or method, matched to its parameters.
/// Errors: too many, unknown, given twice, one of the first `required` missing.
class Parameters {
public:
  Parameters(std::string_view function, const Arguments &arguments,
             std::initializer_list<std::string_view> names, size_t required = 0);
  /// Null if the argument was not given.
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

/// Errors: there are arguments.
void expectNoArguments(std::string_view function, const Arguments &arguments);

bool truth(const Value &value);
/// Python's ==.
bool equal(Budget &budget, const Value &a, const Value &b);
/// Python's <. Errors: types without an order.
bool less(Budget &budget, const Value &a, const Value &b);
/// Whether a value can be a key of a mapping.
bool hashable(Budget &budget, const Value &value);
/// Python's name of the value's type.
std::string typeName(const Value &value);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_VALUE_H
