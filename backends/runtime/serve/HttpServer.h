// HTTP/1.1 over TCP or a Unix socket: connections, limits and timeouts. Knows nothing of models.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_HTTPSERVER_H
#define MICA_BACKENDS_RUNTIME_SERVE_HTTPSERVER_H

#include "backends/runtime/support/Result.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::rt::serve {

struct HttpRequest {
  std::string method; ///< "GET", also for HEAD, whose reply is sent without its body.
  std::string path;   ///< Without scheme, host and query, percent-decoded.
  std::string authorization, contentType;
  std::string body;
};

struct HttpReply {
  unsigned status = 200;
  std::string contentType = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

/// One exchange. Its functions may be called from any thread; those after the client has gone have
/// no effect. Either reply once, or beginStream, send, and endStream once.
class Exchange {
public:
  virtual ~Exchange() = default;
  virtual void reply(HttpReply reply) = 0;
  virtual void beginStream(std::string contentType) = 0;
  /// A client that does not read what waits for it is disconnected.
  virtual void send(std::string bytes) = 0;
  virtual void endStream() = 0;
  /// Calls `callback` on the server's thread, unless the client has gone.
  virtual void post(std::function<void()> callback) = 0;
  /// Calls `callback` on the server's thread if the client goes, or has gone, before the exchange
  /// is over.
  virtual void onDisconnect(std::function<void()> callback) = 0;
  /// Calls `callback` on the server's thread if the exchange is not over after `time`.
  virtual void onTimeout(std::chrono::milliseconds time, std::function<void()> callback) = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8080;                  ///< 0: any that is free
  std::optional<std::string> unixSocket; ///< A path, instead of host and port.
  uint64_t maxBodyBytes = uint64_t(16) << 20;
  uint32_t maxHeaderBytes = 16 << 10;
  size_t maxConnections = 8192;
  /// Bytes that wait for a client to read them.
  size_t maxPendingBytes = size_t(4) << 20;
  /// For a request's header and for its body to arrive, for bytes to be taken, and between
  /// requests.
  std::chrono::seconds receiveTimeout{30}, sendTimeout{30}, idleTimeout{300};
};

class HttpServer {
public:
  /// Called on the server's thread.
  using Handler = std::function<void(HttpRequest, std::shared_ptr<Exchange>)>;
  /// A reply to what is not a well-formed request.
  using ErrorBody = std::function<std::string(unsigned status, const std::string &message)>;

  /// Errors: the address is invalid or in use.
  static Result<std::unique_ptr<HttpServer>> listen(const HttpOptions &options, Handler handler,
                                                    ErrorBody errorBody);
  ~HttpServer();

  /// "http://127.0.0.1:8080", or "unix:PATH".
  const std::string &address() const;
  /// Calls `callback` on the server's thread for each SIGTERM or SIGINT, with their count.
  void onSignal(std::function<void(int count)> callback);
  /// Calls `callback` on the server's thread, once after `time`.
  void after(std::chrono::milliseconds time, std::function<void()> callback);
  /// Serves until stop.
  void run();
  /// Accepts no connections any more; those that are open stay.
  void stopAccepting();
  /// Exchanges that are not over.
  size_t exchanges() const;
  /// Ends run. From the server's thread.
  void stop();

private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_HTTPSERVER_H
