// A request in progress, as the API sees it.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_INPROGRESS_H
#define MICA_BACKENDS_RUNTIME_SERVE_INPROGRESS_H

#include "backends/runtime/serve/ApiError.h"

namespace mica::rt::serve {

/// Its functions are called on the server's thread, and have no effect on a request that has ended.
class InProgress {
public:
  virtual ~InProgress() = default;
  /// Ends the request with an error because the server shuts down; may be called repeatedly.
  virtual void abort() = 0;
  /// Sends an error without waiting for other threads, because the process ends.
  virtual void abandon(const ApiError &error) = 0;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_INPROGRESS_H
