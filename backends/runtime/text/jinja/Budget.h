// The cost limits of a template run. Everything that walks, copies, searches or compares values
// counts its work here, so that no template exceeds the limits of time and memory.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_BUDGET_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_BUDGET_H

#include "backends/runtime/text/jinja/Limits.h"

namespace mica::rt::jinja {

class Budget {
public:
  explicit Budget(const Limits &limits) : limits(limits) {}

  /// Counts work; fails if the limit is exceeded.
  void spend(uint64_t count);
  /// Counts bytes that are about to be allocated, and the work of filling them.
  void reserve(uint64_t count);
  /// The same for this number of values or texts.
  void reserveValues(uint64_t count);

protected:
  const Limits limits;

private:
  uint64_t steps = 0, bytes = 0;
};

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_BUDGET_H
