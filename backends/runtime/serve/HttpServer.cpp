#include "backends/runtime/serve/HttpServer.h"
#include "backends/runtime/serve/HttpConnection.h"
#include "backends/runtime/support/Report.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <netinet/tcp.h>
#include <new>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>

namespace mica::rt::serve {

namespace asio = boost::asio;
using boost::system::error_code;

struct HttpServer::State {
  State(const HttpOptions &options, HttpHandler handler, HttpHeaderCheck headerCheck,
        HttpRejectionListener rejected)
      : shared{options, std::move(handler), std::move(headerCheck), std::move(rejected)},
        tcp(context), local(context), signals(context), pause(context) {}

  Status openTcp();
  Status openUnix();
  template <typename Acceptor> void accept(Acceptor &acceptor);
  void acceptAny() {
    if (shared.options.unixSocket)
      accept(local);
    else
      accept(tcp);
  }
  void waitForSignal();
  void endReceiving(bool always);

  HttpConnections shared;
  asio::io_context context{1};
  asio::ip::tcp::acceptor tcp;
  asio::local::stream_protocol::acceptor local;
  asio::signal_set signals;
  asio::steady_timer pause;
  std::function<void(int)> onSignal;
  int signalCount = 0;
  std::string address;
};

/// Raises the limit of file descriptors, one per connection; the default is often 1024.
static void allowConnections(size_t count) {
  constexpr rlim_t others = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count + others)
    return;
  limit.rlim_cur = std::min<rlim_t>(count + others, limit.rlim_max);
  // If it cannot be raised, connections wait until others are closed.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

/// A host that has crashed or lost its network sends no end of its connections: without probes, its
/// request would be computed to its end. Errors are ignored.
static void detectVanishedHost(int socket) {
  constexpr int idleSeconds = 60, intervalSeconds = 15, probes = 4;
  auto set = [&](int level, int name, int value) {
    (void)setsockopt(socket, level, name, &value, sizeof value);
  };
  set(IPPROTO_TCP, TCP_KEEPIDLE, idleSeconds);
  set(IPPROTO_TCP, TCP_KEEPINTVL, intervalSeconds);
  set(IPPROTO_TCP, TCP_KEEPCNT, probes);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
}

Status HttpServer::State::openTcp() {
  const HttpOptions &options = shared.options;
  std::string place = options.host + ":" + std::to_string(options.port);
  error_code error;
  asio::ip::address host =
      asio::ip::make_address(options.host == "localhost" ? "127.0.0.1" : options.host, error);
  if (error)
    return Error{"--host " + options.host +
                 " is not an IP address; use one such as 127.0.0.1 or 0.0.0.0, or localhost"};
  asio::ip::tcp::endpoint endpoint(host, options.port);
  tcp.open(endpoint.protocol(), error);
  if (!error)
    tcp.set_option(asio::socket_base::reuse_address(true), error);
  if (!error)
    tcp.bind(endpoint, error);
  if (!error)
    tcp.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return Error{"cannot listen on " + place + ": " + error.message() +
                 "; choose another --port or --host"};
  std::string name = host.is_v6() ? "[" + host.to_string() + "]" : host.to_string();
  address = "http://" + name + ":" + std::to_string(tcp.local_endpoint().port());
  return {};
}

Status HttpServer::State::openUnix() {
  const std::string &path = *shared.options.unixSocket;
  // A socket without a listener was left by a killed server.
  struct stat found;
  if (lstat(path.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) {
    asio::local::stream_protocol::socket probe(context);
    error_code refused;
    probe.connect(path, refused);
    if (refused == asio::error::connection_refused)
      unlink(path.c_str());
  }
  error_code error;
  try {
    asio::local::stream_protocol::endpoint endpoint(path);
    local.open(endpoint.protocol(), error);
    if (!error)
      local.bind(endpoint, error);
  } catch (const boost::system::system_error &tooLong) {
    error = tooLong.code();
  }
  if (!error)
    local.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return Error{"cannot listen on " + path + ": " + error.message() +
                 "; choose another --unix-socket"};
  address = "unix:" + path;
  return {};
}

template <typename Acceptor> void HttpServer::State::accept(Acceptor &acceptor) {
  acceptor.async_accept([this, &acceptor](error_code error, auto socket) {
    if (!shared.accepting)
      return;
    if (error) {
      // No file descriptors are left: wait until connections are closed.
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this](error_code stopped) {
        if (!stopped && shared.accepting)
          acceptAny();
      });
      return;
    }
    // First, because an exception must not end accepting. Asio reuses the memory of this operation.
    accept(acceptor);
    // Those above the limit are open until they have the reply that rejects them, or are closed.
    constexpr size_t maxRejected = 32;
    if (shared.connections >= shared.options.maxConnections + maxRejected)
      return;
    if constexpr (std::is_same_v<Acceptor, asio::ip::tcp::acceptor>) {
      error_code ignored;
      socket.set_option(asio::ip::tcp::no_delay(true), ignored);
      detectVanishedHost(socket.native_handle());
    }
    serveConnection(HttpSocket(std::move(socket)), shared);
  });
}

void HttpServer::State::endReceiving(bool always) {
  for (HttpReceiver *each : shared.receiving)
    each->endReceiving(always);
}

void HttpServer::State::waitForSignal() {
  signals.async_wait([this](error_code error, int) {
    if (error)
      return;
    waitForSignal(); // first, because of exceptions
    ++signalCount;
    if (onSignal)
      onSignal(signalCount);
  });
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state(std::move(state)) {}
HttpServer::~HttpServer() { stopAccepting(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpOptions &options,
                                                       HttpHandler handler,
                                                       HttpHeaderCheck headerCheck,
                                                       HttpRejectionListener rejected) {
  allowConnections(options.maxConnections);
  auto state = std::make_unique<State>(options, std::move(handler), std::move(headerCheck),
                                       std::move(rejected));
  if (Status open = options.unixSocket ? state->openUnix() : state->openTcp(); !open)
    return open.error();
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
}

const std::string &HttpServer::address() const { return state->address; }

void HttpServer::onSignal(std::function<void(int)> callback) {
  state->onSignal = std::move(callback);
  state->signals.add(SIGTERM);
  state->signals.add(SIGINT);
  state->waitForSignal();
}

void HttpServer::after(std::chrono::milliseconds time, std::function<void()> callback) {
  auto timer = std::make_shared<asio::steady_timer>(state->context, time);
  timer->async_wait([timer, callback = std::move(callback)](error_code error) {
    if (!error)
      callback();
  });
}

namespace {
struct Repeated : std::enable_shared_from_this<Repeated> {
  Repeated(asio::io_context &context, std::chrono::milliseconds interval,
           std::function<bool()> callback)
      : timer(context), interval(interval), callback(std::move(callback)) {}

  void wait() {
    timer.expires_after(interval);
    timer.async_wait([self = shared_from_this()](error_code error) {
      if (error || self->isOver)
        return;
      self->wait(); // first, because of exceptions
      self->isOver = !self->callback();
    });
  }

  asio::steady_timer timer;
  const std::chrono::milliseconds interval;
  const std::function<bool()> callback;
  bool isOver = false;
};
} // namespace

void HttpServer::repeat(std::chrono::milliseconds interval, std::function<bool()> callback) {
  std::make_shared<Repeated>(state->context, interval, std::move(callback))->wait();
}

void HttpServer::run() {
  state->acceptAny();
  // An exception, such as std::bad_alloc, ends only what its handler did.
  for (bool ended = false; !ended;)
    try {
      state->context.run();
      ended = true;
    } catch (const std::bad_alloc &) {
      // Nothing is reported, because this would need memory.
    } catch (const std::exception &failure) {
      reportNote(std::string("a connection has failed: ") + failure.what());
    }
}

void HttpServer::stopAccepting() {
  if (!state->shared.accepting)
    return;
  state->shared.accepting = false;
  error_code ignored;
  state->tcp.close(ignored);
  state->local.close(ignored);
  if (state->shared.options.unixSocket)
    unlink(state->shared.options.unixSocket->c_str());
  state->endReceiving(/*always=*/false);
}

void HttpServer::limitMemory(uint64_t reserved, uint64_t pending) {
  for (auto [budget, max] :
       {std::pair(&state->shared.memory, reserved), std::pair(&state->shared.pending, pending)})
    budget->setMax(std::min(budget->max(), max));
}

size_t HttpServer::exchanges() const { return state->shared.exchanges; }

size_t HttpServer::receiving() const { return state->shared.receiving.size(); }

void HttpServer::rejectUnreceived() { state->endReceiving(/*always=*/true); }

void HttpServer::stop() { state->context.stop(); }

} // namespace mica::rt::serve
