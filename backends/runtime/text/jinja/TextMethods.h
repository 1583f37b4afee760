// The methods of strings.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEXTMETHODS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEXTMETHODS_H

#include "backends/runtime/text/jinja/MethodRow.h"

namespace mica::rt::jinja {

MethodRows textMethods();

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_TEXTMETHODS_H
