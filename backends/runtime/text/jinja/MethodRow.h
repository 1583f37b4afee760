// The tables of methods.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_METHODROW_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_METHODROW_H

#include "backends/runtime/text/jinja/Interpreter.h"

#include <span>
#include <string_view>

namespace mica::rt::jinja {

using MethodFunction = Value (*)(Interpreter &, const Value &, const Arguments &);

/// The result of a string method for escaped strings.
enum class Markup {
  Plain,   ///< No markup.
  Marked,  ///< Markup, alone or in a list.
  Escaping ///< Markup; arguments are escaped first.
};

/// Without a function: a method of Python that is not supported or mutates its object.
struct MethodRow {
  std::string_view name;
  MethodFunction run;
  Markup markup = Markup::Plain;
};

using MethodRows = std::span<const MethodRow>;

inline void takesNothing(const Arguments &arguments) { expectNoArguments("the method", arguments); }

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_METHODROW_H
