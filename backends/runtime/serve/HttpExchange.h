// An HTTP request and its reply, and the options of the server.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_HTTPEXCHANGE_H
#define MICA_BACKENDS_RUNTIME_SERVE_HTTPEXCHANGE_H

#include "backends/runtime/serve/MemoryBudget.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::rt::serve {

struct HttpRequest {
  std::string method;        ///< "GET", also for HEAD, whose reply is sent without its body.
  std::string path;          ///< Without scheme, host and query, percent-decoded.
  std::string authorization; ///< The header of that name, as the others; empty: absent.
  std::string host, origin;
  std::string contentEncoding;
  std::string body;
  /// Of the memory that the request takes: its body, and later what is kept of it, or the reply.
  /// Released when the exchange is over and nothing refers to it.
  std::shared_ptr<Reservation> reservation = {};
};

struct HttpReply {
  unsigned status = 200;
  std::string contentType = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::shared_ptr<const Reservation> reservation = {}; ///< kept until the reply has been sent
};

/// A request and its reply. Functions may be called from any thread, and have no effect after the
/// client has disconnected. Call either reply once, or beginStream, send any number of times, and
/// endStream once.
class Exchange {
public:
  virtual ~Exchange() = default;
  virtual void reply(HttpReply reply) = 0;
  virtual void beginStream(std::string contentType) = 0;
  /// Sends a part of a stream. A client that does not read pending data is disconnected.
  virtual void send(std::string bytes) = 0;
  virtual void endStream() = 0;
  /// Calls `callback` on the server's thread, unless the client has disconnected.
  virtual void post(std::function<void()> callback) = 0;
  /// Calls `callback` on the server's thread if the client disconnects, or has disconnected, before
  /// the exchange is over.
  virtual void onDisconnect(std::function<void()> callback) = 0;
  /// Calls `callback` on the server's thread if the exchange is not over after `time`.
  virtual void onTimeout(std::chrono::milliseconds time, std::function<void()> callback) = 0;
  /// Calls `callback` on the server's thread after each `interval` until the exchange is over.
  virtual void every(std::chrono::milliseconds interval, std::function<void()> callback) = 0;
};

/// The memory that a header, and a body, may take without being part of a limited total.
inline constexpr uint64_t kFreeBytes = 4 << 10;
/// What is reserved for a header, or a body, of that size.
constexpr uint64_t reservedFor(uint64_t bytes) { return bytes <= kFreeBytes ? 0 : bytes; }

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;                       ///< 0: any that is free
  std::optional<std::string> unixSocket = {}; ///< a path; replaces host and port
  uint64_t maxBodyBytes = uint64_t(16) << 20;
  uint32_t maxHeaderBytes = 16 << 10;
  /// The maximum size of all requests together, as far as they have been received, unless a single
  /// one may be larger. Each may have kFreeBytes more. See HttpRequest::reservation.
  uint64_t maxReservedBytes = uint64_t(256) << 20;
  size_t maxConnections = 8192; ///< further ones are rejected
  /// The maximum number of bytes of a stream that are buffered for a client, and for all together.
  size_t maxPendingBytes = size_t(4) << 20;
  uint64_t maxTotalPendingBytes = uint64_t(256) << 20;
  /// The timeouts for receiving a request's header and its body, each as a whole; for a client that
  /// takes none of the bytes sent to it; and between requests.
  std::chrono::seconds receiveTimeout{30}, sendTimeout{30}, idleTimeout{300};
};

/// Called on the server's thread.
using HttpHandler = std::function<void(HttpRequest, std::shared_ptr<Exchange>)>;
/// Returns the reply to a request that is rejected by its header; it is called before a body is
/// received, unless that is small, and again while it is received if the server stops accepting.
using HttpHeaderCheck = std::function<std::optional<HttpReply>(const HttpRequest &header)>;
/// Called when a request is rejected before it has been received, except by its header; `status` is
/// that of the reply.
using HttpRejectionListener = std::function<void(unsigned status)>;

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_HTTPEXCHANGE_H
