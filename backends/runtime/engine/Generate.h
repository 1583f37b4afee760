// Several requests from their beginning to their end.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_GENERATE_H
#define MICA_BACKENDS_RUNTIME_ENGINE_GENERATE_H

#include "backends/runtime/engine/Scheduler.h"

namespace mica::rt {

struct GenerateResult {
  std::vector<RequestResult> texts; ///< In the order of the requests.
  Scheduler::Totals totals;         ///< Of this call.
};

/// Steps until each of the requests has its end, which none reaches by an error. The first error is
/// returned, and the other requests are cancelled then. `listeners`: one for each request; null:
/// nobody listens.
Result<GenerateResult> generate(Scheduler &scheduler, std::vector<Request> requests,
                                const std::vector<RequestListener *> &listeners);
Result<GenerateResult> generate(Scheduler &scheduler, std::vector<Request> requests);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_GENERATE_H
