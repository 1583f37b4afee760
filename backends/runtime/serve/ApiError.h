// Errors of the HTTP API, in the format of OpenAI's errors.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_APIERROR_H
#define MICA_BACKENDS_RUNTIME_SERVE_APIERROR_H

#include "backends/runtime/serve/HttpExchange.h"

#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::rt::serve {

using Json = nlohmann::ordered_json;

struct ApiError {
  unsigned status = 400; ///< HTTP status
  std::string message;
  std::optional<std::string> param = {}; ///< the invalid field
  std::optional<std::string> code = {};
  std::optional<int64_t> retryAfter = {}; ///< seconds after which the client may try again

  /// {"error": {"message", "type", "param", "code"}}. The message and the field, which may quote a
  /// request of any size, are shortened.
  Json toJson() const;
};

/// The error for a request that has ended with an exception.
ApiError internalError(const std::exception &failure);
/// The error for requests that are rejected or aborted during shutdown.
ApiError shuttingDown();
/// The error for requests that exceed --request-timeout.
ApiError timedOut();
/// The error for a request that there is no memory to receive or to keep at the moment.
ApiError tooManyLargeRequests();

/// The error for a request that, or whose reply, takes `bytes`, for which the server never has
/// memory.
ApiError tooLargeRequest(uint64_t bytes);

/// The reply with an error, its Retry-After, and `headers`.
HttpReply errorReply(const ApiError &error,
                     std::vector<std::pair<std::string, std::string>> headers = {});

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_APIERROR_H
