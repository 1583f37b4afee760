#include "backends/runtime/text/jinja/Failure.h"

#include <utility>

namespace mica::rt::jinja {

void fail(std::string message) { throw Failure{std::move(message)}; }

} // namespace mica::rt::jinja
