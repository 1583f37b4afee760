// What running a template may cost. Whatever walks, copies, searches or compares values counts its
// work here, so that no foreign template takes more time or memory than the limits allow.
#ifndef MICA_BACKENDS_RUNTIME_TEXT_JINJA_BUDGET_H
#define MICA_BACKENDS_RUNTIME_TEXT_JINJA_BUDGET_H

#include "backends/runtime/text/jinja/Limits.h"

namespace mica::rt::jinja {

class Budget {
public:
  explicit Budget(const Limits &limits) : limits(limits) {}

  /// Counts work; errors where there was too much.
  void spend(uint64_t count);
  /// Counts the bytes of what is about to be made, and the work of making it.
  void reserve(uint64_t count);
  /// The same for so many values or texts beside each other.
  void reserveValues(uint64_t count);

protected:
  const Limits limits;

private:
  uint64_t steps = 0, bytes = 0;
};

} // namespace mica::rt::jinja

#endif // MICA_BACKENDS_RUNTIME_TEXT_JINJA_BUDGET_H
