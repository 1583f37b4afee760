// The exception for errors in templates.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_FAILURE_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_FAILURE_H

#include <string>

namespace mica::rt::jinja {

/// Thrown within this folder only; Template converts it to an Error.
struct Failure {
  std::string message;
  int line = 0; ///< 0: set by the innermost enclosing statement or expression
};
[[noreturn]] void fail(std::string message);

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_FAILURE_H
