#include "backends/runtime/serve/ApiError.h"

#include <new>

namespace mica::rt::serve {

static const char *typeOf(unsigned status) {
  switch (status) {
  case 401:
    return "authentication_error";
  case 404:
    return "not_found_error";
  case 429:
    return "rate_limit_error";
  default:
    return status < 500 ? "invalid_request_error" : "server_error";
  }
}

ApiError internalError(const std::exception &failure) {
  bool memory = dynamic_cast<const std::bad_alloc *>(&failure);
  return {.status = 500, .message = memory ? "the server is out of memory" : failure.what()};
}

ApiError shuttingDown() { return {.status = 503, .message = "the server is shutting down"}; }
ApiError timedOut() {
  return {.status = 504, .message = "the request took longer than the server allows"};
}

Json ApiError::toJson() const {
  return {{"error",
           {{"message", message},
            {"type", typeOf(status)},
            {"param", param ? Json(*param) : Json()},
            {"code", code ? Json(*code) : Json()}}}};
}

} // namespace mica::rt::serve
