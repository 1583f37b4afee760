// The state of a template run besides its tree: variables, output, and the limits of what a
// template may cost.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_INTERPRETER_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_INTERPRETER_H

#include "backends/runtime/text/jinja/Ast.h"
#include "backends/runtime/text/jinja/Limits.h"

namespace mica::rt::jinja {

/// Variables of a block. Enclosing blocks are searched next.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<std::string, Value>> variables;

  Value *find(Budget &budget, std::string_view name);
  void set(Budget &budget, std::string_view name, Value value);
};

class Interpreter : public Budget {
public:
  /// `contexts`: mappings of variables.
  Interpreter(std::initializer_list<Value> contexts, const Limits &limits, const Clock &clock);
  /// Breaks reference cycles.
  ~Interpreter();

  TrackedText render(const Block &block);

  Value evaluate(const Expression &expression);
  Flow execute(const Block &block);
  /// The output of `run`, executed in a new scope within `parent`.
  Flow capture(std::shared_ptr<Scope> parent, TrackedText &text, const std::function<Flow()> &run);
  Flow capture(const Block &block, TrackedText &text) {
    return capture(scope, text, [&] { return execute(block); });
  }
  void write(const TrackedText &text);
  /// Text of the template itself.
  void write(std::string_view text);

  Value lookUp(const std::string &name);
  void assign(const Target &target, const Value &value);
  /// A new scope within the current one, for the lifetime of the result.
  class Inner;

  /// object.name, object[key] and calls, as in the sandbox of transformers.
  Value attribute(const Value &object, const std::string &name);
  Value item(const Value &object, const Value &key);
  Value call(const Value &callee, Arguments &arguments);
  /// The items of an iterable. Errors: the value is not iterable.
  Values items(const Value &value);

  /// The text as a value.
  Value text(TrackedText text);
  /// The text as a value, marked as escaped where `source` is.
  Value textLike(const Value &source, TrackedText text);
  /// A text derived from `source`, without known origins of its characters.
  TrackedText madeOf(const Value &source, std::string bytes) const {
    return TrackedText::of(std::move(bytes), source.untrusted());
  }
  /// Cleared at the end.
  void keep(std::shared_ptr<Scope> scope) {
    reserveValues(4);
    kept.push_back(std::move(scope));
  }

  std::string now(const std::string &format) const { return clock(format); }

  std::shared_ptr<Scope> scope;

private:
  friend class Frame;
  /// Errors: this number of additional bytes exceeds the limit.
  void reserveOutput(size_t count);
  const Clock &clock;
  TrackedText *output = nullptr;
  std::vector<std::shared_ptr<Scope>> kept;
  int depth = 0;
};

class Interpreter::Inner {
public:
  Inner(Interpreter &interpreter, std::shared_ptr<Scope> parent)
      : interpreter(interpreter), before(std::move(interpreter.scope)) {
    interpreter.scope = std::make_shared<Scope>(Scope{std::move(parent), {}});
  }
  explicit Inner(Interpreter &interpreter) : Inner(interpreter, interpreter.scope) {}
  ~Inner() { interpreter.scope = std::move(before); }

private:
  Interpreter &interpreter;
  std::shared_ptr<Scope> before;
};

/// The result of `namespace`, the only mutable value.
class Namespace final : public Object {
public:
  explicit Namespace(std::shared_ptr<Scope> scope) : scope(std::move(scope)) {}
  std::string_view typeName() const override { return "Namespace"; }
  std::optional<Value> attribute(Interpreter &interpreter, std::string_view name) override;
  std::shared_ptr<Scope> scope; ///< Its attributes.
};

/// The entries of a dict as tuples.
Values pairsOf(Interpreter &interpreter, const Mapping &mapping);
/// Unsupported uses of an undefined value fail with the value's own message.
void requireDefined(const Value &value);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_INTERPRETER_H
