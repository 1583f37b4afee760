#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/support/Output.h"

#include <cstdint>
#include <new>
#include <string_view>

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

ApiError tooManyLargeRequests() {
  return {.status = 503,
          .message = "too many large requests at once; try again later",
          .retryAfter = 1};
}

ApiError tooLargeRequest(uint64_t bytes) {
  return {.status = 413,
          .message = "the request or its reply takes " + std::to_string(bytes) +
                     " bytes of memory, more than the server has for requests; send less"};
}

/// `text`, without its middle if it has more than `max` bytes.
static std::string shortened(std::string_view text, size_t max) {
  if (text.size() <= max)
    return std::string(text);
  auto isInCharacter = [&](size_t at) { return (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80; };
  size_t begin = max / 2, end = text.size() - max / 2;
  while (begin > 0 && isInCharacter(begin))
    --begin;
  while (end < text.size() && isInCharacter(end))
    ++end;
  return std::string(text.substr(0, begin)) + "..." + std::string(text.substr(end));
}

Json ApiError::toJson() const {
  constexpr size_t maxMessage = 1000, maxParam = 100;
  return {{"error",
           {{"message", shortened(message, maxMessage)},
            {"type", typeOf(status)},
            {"param", param ? Json(shortened(*param, maxParam)) : Json()},
            {"code", code ? Json(*code) : Json()}}}};
}

HttpReply errorReply(const ApiError &error,
                     std::vector<std::pair<std::string, std::string>> headers) {
  if (error.retryAfter)
    headers.emplace_back("Retry-After", std::to_string(*error.retryAfter));
  return {
      .status = error.status, .body = toJsonText(error.toJson()), .headers = std::move(headers)};
}

} // namespace mica::rt::serve
