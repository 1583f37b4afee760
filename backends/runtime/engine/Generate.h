// Runs several requests to completion.
#ifndef MICA_BACKENDS_RUNTIME_ENGINE_GENERATE_H
#define MICA_BACKENDS_RUNTIME_ENGINE_GENERATE_H

#include "backends/runtime/engine/Scheduler.h"

namespace mica::rt {

struct GenerateResult {
  std::vector<RequestResult> texts; ///< In the order of the requests.
  Scheduler::Totals totals;         ///< Of this call.
};

/// Runs the scheduler until all requests have finished. The first error is returned, and the other
/// requests are then canceled. `listeners`: one per request, or null.
Result<GenerateResult> generate(Scheduler &scheduler, std::vector<Request> requests,
                                const std::vector<RequestListener *> &listeners);
Result<GenerateResult> generate(Scheduler &scheduler, std::vector<Request> requests);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_ENGINE_GENERATE_H
