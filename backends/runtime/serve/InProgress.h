// A request in progress, as the API sees it.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_INPROGRESS_H
#define MICA_BACKENDS_RUNTIME_SERVE_INPROGRESS_H

#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/serve/Metrics.h"

namespace mica::rt::serve {

class InProgress {
public:
  virtual ~InProgress() = default;
  /// Ends the request with an error, which is sent without waiting for other threads. Called on the
  /// server's thread; has no effect on a request that has ended.
  virtual void abort(const ApiError &error, Outcome outcome) = 0;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_INPROGRESS_H
