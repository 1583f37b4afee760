// Python's arithmetic on values.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_OPERATORS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_OPERATORS_H

#include "backends/runtime/text/jinja/Interpreter.h"

namespace mica::rt::jinja {

/// Operators, except those that do not always evaluate both sides.
Value combine(Interpreter &interpreter, std::string_view operation, const Value &left,
              const Value &right);
/// Python's `needle in haystack`.
bool contains(Interpreter &interpreter, const Value &needle, const Value &haystack);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_OPERATORS_H
