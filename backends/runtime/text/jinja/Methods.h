// The methods of strings, dicts and lists.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_METHODS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_METHODS_H

#include "backends/runtime/text/jinja/Value.h"

#include <optional>
#include <string_view>

namespace mica::rt::jinja {

/// A method bound to a string, a dict or a list; empty: it has no method of this name.
std::optional<Value> findMethod(const Value &object, std::string_view name);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_METHODS_H
