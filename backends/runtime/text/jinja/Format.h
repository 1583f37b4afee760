// Python's `%` and str.format.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_FORMAT_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_FORMAT_H

#include "backends/runtime/text/jinja/Interpreter.h"

namespace mica::rt::jinja {

/// Python's `format % values`.
TrackedText formatPercent(Interpreter &interpreter, const TrackedText &format, const Value &values);
/// Python's str.format.
TrackedText formatBraces(Interpreter &interpreter, const TrackedText &format,
                         const Arguments &arguments);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_FORMAT_H
