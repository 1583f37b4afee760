// The functions of the environment.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_FUNCTIONS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_FUNCTIONS_H

#include "backends/runtime/text/jinja/Value.h"

#include <string_view>

namespace mica::rt::jinja {

/// A function of the environment; null: none has this name.
Value findGlobal(std::string_view name);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_FUNCTIONS_H
