// HTTP/1.1 over TCP or a Unix socket: connections, limits and timeouts. Independent of models.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_HTTPSERVER_H
#define MICA_BACKENDS_RUNTIME_SERVE_HTTPSERVER_H

#include "backends/runtime/serve/HttpExchange.h"
#include "backends/runtime/support/Result.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace mica::rt::serve {

class HttpServer {
public:
  /// Errors: the address is invalid or in use.
  static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions &options, HttpHandler handler,
                                                    HttpHeaderCheck headerCheck,
                                                    HttpRejectionListener rejected);
  ~HttpServer();

  /// "http://127.0.0.1:8080", or "unix:PATH".
  const std::string &address() const;
  /// Calls `callback` on the server's thread for each SIGTERM or SIGINT, with their count.
  void onSignal(std::function<void(int count)> callback);
  /// Calls `callback` on the server's thread, once after `time`.
  void after(std::chrono::milliseconds time, std::function<void()> callback);
  /// Calls `callback` on the server's thread in these intervals until it returns false. An
  /// exception ends only the call.
  void repeat(std::chrono::milliseconds interval, std::function<bool()> callback);
  /// Serves until stop is called.
  void run();
  /// Stops accepting connections; open ones are not closed. Requests that are being received are
  /// from now on rejected by their headers; see HttpHeaderCheck.
  void stopAccepting();
  /// Lowers the limits of all requests (HttpOptions::maxReservedBytes) and all streams
  /// (maxTotalPendingBytes), even if not every body then fits. Must be called on the server's
  /// thread.
  void limitMemory(uint64_t reserved, uint64_t pending);
  /// The number of exchanges in progress.
  size_t exchanges() const;
  /// The number of connections whose requests are being received, or are still being sent after the
  /// reply.
  size_t receiving() const;
  /// Replies to the requests that are being received with status 503.
  void rejectUnreceived();
  /// Makes run return. Must be called on the server's thread.
  void stop();

private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_HTTPSERVER_H
