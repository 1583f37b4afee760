#include "backends/runtime/text/jinja/Budget.h"
#include "backends/runtime/text/jinja/Failure.h"

namespace mica::rt::jinja {

void Budget::spend(uint64_t count) {
  steps += count;
  if (count > limits.steps || steps > limits.steps)
    fail("the template takes more than " + std::to_string(limits.steps) + " steps");
}

void Budget::reserve(uint64_t count) {
  bytes += count;
  if (count > limits.madeBytes || bytes > limits.madeBytes)
    fail("the template makes more than " + std::to_string(limits.madeBytes) +
         " bytes of text and lists");
  spend(count / 64);
}

} // namespace mica::rt::jinja
