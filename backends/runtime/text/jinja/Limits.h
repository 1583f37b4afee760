// The limits and the clock of a template run.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_LIMITS_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_LIMITS_H

#include <cstdint>
#include <functional>
#include <string>

namespace mica::rt::jinja {

/// A template run that exceeds one of these limits fails.
struct Limits {
  uint64_t sourceBytes = uint64_t(1) << 20;
  uint64_t steps = 20'000'000;            ///< expressions, statements, items, characters read
  uint64_t madeBytes = uint64_t(1) << 28; ///< all texts and lists created during the run
  uint64_t outputBytes = uint64_t(1) << 26;
  int depth = 400; ///< of running nodes, including nested macros
};

/// The local time, formatted by strftime.
using Clock = std::function<std::string(const std::string &format)>;

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_LIMITS_H
