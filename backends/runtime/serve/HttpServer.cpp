#include "backends/runtime/serve/HttpServer.h"

#include <algorithm>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cstdio>
#include <deque>
#include <sstream>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unordered_set>
#include <variant>

namespace mica::rt::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

namespace {
class Connection;

/// What connections share.
struct Shared {
  HttpOptions options;
  HttpServer::Handler handler;
  HttpServer::ErrorBody errorBody;
  size_t connections = 0;
  size_t exchanges = 0;
  bool accepting = true;
};

/// A connection and the exchange that is in progress on it. Everything but Exchange's functions,
/// which post what they do, runs on the server's thread.
class Connection final : public std::enable_shared_from_this<Connection> {
public:
  Connection(Socket socket, Shared &shared)
      : stream(std::move(socket)), timer(stream.get_executor()), shared(shared) {
    ++shared.connections;
  }
  ~Connection() { --shared.connections; }

  void read();

  void reply(HttpReply reply);
  void beginStream(const std::string &contentType);
  void send(std::string bytes);
  void endStream();
  /// The exchange is in progress.
  bool isOpen() const { return inExchange; }
  void setOnDisconnect(std::function<void()> callback) {
    if (closed)
      callback();
    else
      onDisconnect = std::move(callback);
  }
  void setOnTimeout(std::chrono::milliseconds time, std::function<void()> callback);

  /// Of the exchange in progress; every exchange has another one.
  uint64_t number() const { return exchangeNumber; }
  asio::any_io_executor executor() { return stream.get_executor(); }

private:
  void readHeader();
  void readBody();
  void handle();
  void replyError(unsigned status, const std::string &message);
  void fail(error_code error);
  void beginExchange();
  void watch();
  void queue(std::string bytes);
  void write();
  void finish();
  void linger();
  void disconnect();

  Stream stream;
  asio::steady_timer timer;
  Shared &shared;
  beast::flat_buffer buffer;
  std::optional<http::request_parser<http::string_body>> parser;
  std::deque<std::string> pending; ///< Bytes to write; the first is being written.
  size_t pendingBytes = 0;
  uint64_t exchangeNumber = 0;
  bool inExchange = false, keepAlive = false, chunked = false, ended = false, closed = false;
  bool headOnly = false; ///< The reply is sent without its body.
  bool isUnread = false; ///< The client may still be sending the request that is replied to.
  bool isOld = false;    ///< The client speaks HTTP/1.0.
  size_t discarded = 0;  ///< Bytes that came after the reply.
  std::function<void()> onDisconnect;
};

/// The exchange of a connection that has a given number.
class ConnectionExchange final : public Exchange {
public:
  explicit ConnectionExchange(std::shared_ptr<Connection> connection)
      : connection(std::move(connection)), number(this->connection->number()) {}

  void reply(HttpReply reply) override {
    act([reply = std::move(reply)](Connection &c) mutable { c.reply(std::move(reply)); });
  }
  void beginStream(std::string contentType) override {
    act([type = std::move(contentType)](Connection &c) { c.beginStream(type); });
  }
  void send(std::string bytes) override {
    act([bytes = std::move(bytes)](Connection &c) mutable { c.send(std::move(bytes)); });
  }
  void endStream() override {
    act([](Connection &c) { c.endStream(); });
  }
  void post(std::function<void()> callback) override {
    act([callback = std::move(callback)](Connection &c) {
      if (c.isOpen())
        callback();
    });
  }
  void onDisconnect(std::function<void()> callback) override {
    act([callback = std::move(callback)](Connection &c) mutable {
      c.setOnDisconnect(std::move(callback));
    });
  }
  void onTimeout(std::chrono::milliseconds time, std::function<void()> callback) override {
    act([time, callback = std::move(callback)](Connection &c) mutable {
      c.setOnTimeout(time, std::move(callback));
    });
  }

private:
  template <typename Action> void act(Action action) {
    asio::post(connection->executor(),
               [connection = connection, number = number, action = std::move(action)]() mutable {
                 if (connection->number() == number)
                   action(*connection);
               });
  }

  std::shared_ptr<Connection> connection;
  uint64_t number;
};

void Connection::read() {
  parser.emplace();
  parser->body_limit(shared.options.maxBodyBytes);
  parser->header_limit(shared.options.maxHeaderBytes);
  if (exchangeNumber == 0 || buffer.size() != 0)
    return readHeader();
  // The time for a header counts from its first byte.
  constexpr size_t firstBytes = 512;
  stream.expires_after(shared.options.idleTimeout);
  stream.async_read_some(buffer.prepare(firstBytes),
                         [self = shared_from_this()](error_code error, size_t count) {
                           if (error)
                             return self->disconnect();
                           self->buffer.commit(count);
                           self->readHeader();
                         });
}

void Connection::readHeader() {
  stream.expires_after(shared.options.receiveTimeout);
  http::async_read_header(stream, buffer, *parser,
                          [self = shared_from_this()](error_code error, size_t) {
                            if (error)
                              self->fail(error);
                            else
                              self->readBody();
                          });
}

void Connection::readBody() {
  stream.expires_after(shared.options.receiveTimeout);
  auto readRest = [self = shared_from_this()](error_code error, size_t) {
    if (error)
      return self->fail(error);
    http::async_read(self->stream, self->buffer, *self->parser, [self](error_code error, size_t) {
      if (error)
        self->fail(error);
      else
        self->handle();
    });
  };
  if (!beast::iequals(parser->get()[http::field::expect], "100-continue"))
    return readRest({}, 0);
  static constexpr std::string_view goOn = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream, asio::buffer(goOn), readRest);
}

/// A request could not be read.
void Connection::fail(error_code error) {
  if (error == http::error::body_limit)
    replyError(413,
               "the body has more than " + std::to_string(shared.options.maxBodyBytes) + " bytes");
  else if (error == http::error::header_limit)
    replyError(431, "the header has more than " + std::to_string(shared.options.maxHeaderBytes) +
                        " bytes");
  else if (error == beast::error::timeout && parser->got_some())
    disconnect(); // the stream is closed by its timeout
  else if (error.category() == make_error_code(http::error::bad_method).category() &&
           error != http::error::end_of_stream && error != http::error::partial_message)
    replyError(400, "the request is not HTTP/1.1: " + error.message());
  else
    disconnect();
}

void Connection::replyError(unsigned status, const std::string &message) {
  beginExchange();
  keepAlive = false;
  headOnly = false;
  isUnread = true;
  reply({.status = status, .body = shared.errorBody(status, message)});
}

void Connection::beginExchange() {
  ++exchangeNumber;
  ++shared.exchanges;
  inExchange = true;
  ended = false;
}

static int hexDigit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/// The path of a request's target, which is a path with a query or, as proxies get it, a whole URL
/// (RFC 9112, 3.2). A percent sign that two digits do not follow is kept.
static std::string pathOf(std::string_view target) {
  for (std::string_view scheme : {"http://", "https://"})
    if (beast::iequals(target.substr(0, scheme.size()), scheme)) {
      size_t begin = target.find_first_of("/?", scheme.size());
      target = begin == target.npos || target[begin] == '?' ? "/" : target.substr(begin);
    }
  target = target.substr(0, target.find('?'));
  std::string path;
  for (size_t i = 0; i < target.size(); ++i) {
    bool encoded = target[i] == '%' && i + 2 < target.size() && hexDigit(target[i + 1]) >= 0 &&
                   hexDigit(target[i + 2]) >= 0;
    path += encoded ? static_cast<char>(16 * hexDigit(target[i + 1]) + hexDigit(target[i + 2]))
                    : target[i];
    i += encoded ? 2 : 0;
  }
  return path;
}

void Connection::handle() {
  http::request<http::string_body> got = parser->release();
  beginExchange();
  keepAlive = got.keep_alive();
  isOld = got.version() < 11;
  chunked = !isOld;
  headOnly = got.method() == http::verb::head;
  stream.expires_never();
  watch();
  std::string_view target(got.target().data(), got.target().size());
  HttpRequest request{.method = headOnly ? "GET" : std::string(got.method_string()),
                      .path = pathOf(target),
                      .authorization = std::string(got[http::field::authorization]),
                      .contentType = std::string(got[http::field::content_type]),
                      .body = std::move(got.body())};
  auto exchange = std::make_shared<ConnectionExchange>(shared_from_this());
  try {
    shared.handler(std::move(request), exchange);
  } catch (const std::exception &failure) {
    exchange->reply({.status = 500, .body = shared.errorBody(500, failure.what())});
  }
}

/// Notices a client that goes before its exchange is over.
void Connection::watch() {
  stream.socket().async_wait(Socket::wait_read, [self = shared_from_this(),
                                                 number = exchangeNumber](error_code error) {
    if (error || !self->inExchange || self->exchangeNumber != number || self->closed)
      return;
    // Readable without bytes: the connection is closed. With bytes: a pipelined request.
    char byte = 0;
    ssize_t got = ::recv(self->stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
      self->disconnect();
  });
}

void Connection::setOnTimeout(std::chrono::milliseconds time, std::function<void()> callback) {
  timer.expires_after(time);
  timer.async_wait([self = shared_from_this(), number = exchangeNumber,
                    callback = std::move(callback)](error_code error) {
    if (!error && self->inExchange && self->exchangeNumber == number)
      callback();
  });
}

static void setCommon(http::fields &fields, const std::string &contentType) {
  fields.set(http::field::server, "mica/" MICA_VERSION);
  fields.set(http::field::content_type, contentType);
  fields.set("X-Content-Type-Options", "nosniff");
}

void Connection::reply(HttpReply reply) {
  if (!inExchange || ended)
    return;
  http::response<http::string_body> response(static_cast<http::status>(reply.status), 11);
  setCommon(response, reply.contentType);
  for (const auto &[name, value] : reply.headers)
    response.set(name, value);
  keepAlive = keepAlive && shared.accepting;
  response.keep_alive(keepAlive);
  if (keepAlive && isOld) // the default of HTTP/1.0 is to close
    response.set(http::field::connection, "keep-alive");
  response.body() = std::move(reply.body);
  response.prepare_payload();
  std::ostringstream text;
  if (headOnly)
    text << response.base();
  else
    text << response;
  ended = true;
  chunked = false;
  queue(std::move(text).str());
}

void Connection::beginStream(const std::string &contentType) {
  if (!inExchange || ended)
    return;
  http::response_header<> header;
  header.version(11);
  header.result(http::status::ok);
  setCommon(header, contentType);
  header.set(http::field::cache_control, "no-cache");
  if (chunked)
    header.set(http::field::transfer_encoding, "chunked");
  keepAlive = keepAlive && chunked && shared.accepting;
  if (!keepAlive)
    header.set(http::field::connection, "close");
  std::ostringstream text;
  text << header;
  queue(std::move(text).str());
}

void Connection::send(std::string bytes) {
  if (!inExchange || ended || bytes.empty())
    return;
  if (chunked) {
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    bytes = size + bytes + "\r\n";
  }
  if (pendingBytes + bytes.size() > shared.options.maxPendingBytes)
    return disconnect();
  queue(std::move(bytes));
}

void Connection::endStream() {
  if (!inExchange || ended)
    return;
  ended = true;
  if (chunked)
    queue("0\r\n\r\n");
  else if (pending.empty()) // else when all is written
    finish();
}

/// Writes `bytes` after those that are pending.
void Connection::queue(std::string bytes) {
  pendingBytes += bytes.size();
  pending.push_back(std::move(bytes));
  if (pending.size() == 1)
    write();
}

void Connection::write() {
  stream.expires_after(shared.options.sendTimeout);
  asio::async_write(stream, asio::buffer(pending.front()),
                    [self = shared_from_this()](error_code error, size_t) {
                      if (self->closed)
                        return;
                      if (error)
                        return self->disconnect();
                      self->stream.expires_never();
                      self->pendingBytes -= self->pending.front().size();
                      self->pending.pop_front();
                      if (!self->pending.empty())
                        self->write();
                      else if (self->ended)
                        self->finish();
                    });
}

/// Everything of an exchange has been written.
void Connection::finish() {
  inExchange = false;
  --shared.exchanges;
  onDisconnect = nullptr;
  timer.cancel();
  if (keepAlive)
    return read();
  if (isUnread)
    return linger();
  disconnect();
}

/// Closes only the sending direction, and discards what the client is still sending: closing a
/// connection that has unread bytes may take the reply from the client before it is read.
void Connection::linger() {
  constexpr size_t bytes = 16 << 10, limit = size_t(64) << 20;
  if (discarded == 0) {
    error_code ignored;
    stream.socket().shutdown(Socket::shutdown_send, ignored);
    stream.expires_after(
        std::min<std::chrono::seconds>(shared.options.receiveTimeout, std::chrono::seconds(2)));
  }
  buffer.clear();
  stream.async_read_some(buffer.prepare(bytes),
                         [self = shared_from_this()](error_code error, size_t count) {
                           self->discarded += count;
                           if (error || self->discarded > limit)
                             self->disconnect();
                           else
                             self->linger();
                         });
}

void Connection::disconnect() {
  if (closed)
    return;
  closed = true;
  error_code ignored;
  stream.socket().shutdown(Socket::shutdown_both, ignored);
  stream.close();
  timer.cancel();
  if (!inExchange)
    return;
  inExchange = false;
  --shared.exchanges;
  if (auto callback = std::exchange(onDisconnect, nullptr))
    callback();
}
} // namespace

struct HttpServer::State {
  State(const HttpOptions &options, Handler handler, ErrorBody errorBody)
      : shared{options, std::move(handler), std::move(errorBody)}, tcp(context), local(context),
        signals(context), pause(context) {}

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

  Shared shared;
  asio::io_context context{1};
  asio::ip::tcp::acceptor tcp;
  asio::local::stream_protocol::acceptor local;
  asio::signal_set signals;
  asio::steady_timer pause;
  std::function<void(int)> onSignal;
  int signalCount = 0;
  std::string address;
};

/// Every connection is a file descriptor, of which a process may often have 1024 unless it asks.
static void allowConnections(size_t count) {
  constexpr rlim_t others = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count + others)
    return;
  limit.rlim_cur = std::min<rlim_t>(count + others, limit.rlim_max);
  // Where it cannot be raised, connections wait until others are closed.
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

Status HttpServer::State::openTcp() {
  const HttpOptions &options = shared.options;
  std::string place = options.host + ":" + std::to_string(options.port);
  error_code error;
  asio::ip::address host = asio::ip::make_address(options.host, error);
  if (error)
    return Error{"--host " + options.host +
                 " is not an IP address, write one such as 127.0.0.1 or 0.0.0.0"};
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
                 ", choose another --port or --host"};
  std::string name = host.is_v6() ? "[" + options.host + "]" : options.host;
  address = "http://" + name + ":" + std::to_string(tcp.local_endpoint().port());
  return {};
}

Status HttpServer::State::openUnix() {
  const std::string &path = *shared.options.unixSocket;
  // A socket that nobody listens to is left over from a server that was killed.
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
                 ", choose another --unix-socket"};
  address = "unix:" + path;
  return {};
}

template <typename Acceptor> void HttpServer::State::accept(Acceptor &acceptor) {
  acceptor.async_accept([this, &acceptor](error_code error, auto socket) {
    if (!shared.accepting)
      return;
    if (!error && shared.connections < shared.options.maxConnections) {
      if constexpr (std::is_same_v<Acceptor, asio::ip::tcp::acceptor>) {
        error_code ignored;
        socket.set_option(asio::ip::tcp::no_delay(true), ignored);
      }
      std::make_shared<Connection>(Socket(std::move(socket)), shared)->read();
    } else if (error) {
      // No file descriptors are left: some connections will end.
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this](error_code stopped) {
        if (!stopped && shared.accepting)
          acceptAny();
      });
      return;
    }
    accept(acceptor);
  });
}

void HttpServer::State::waitForSignal() {
  signals.async_wait([this](error_code error, int) {
    if (error)
      return;
    ++signalCount;
    if (onSignal)
      onSignal(signalCount);
    waitForSignal();
  });
}

HttpServer::HttpServer(std::unique_ptr<State> state) : state(std::move(state)) {}
HttpServer::~HttpServer() { stopAccepting(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(const HttpOptions &options, Handler handler,
                                                       ErrorBody errorBody) {
  allowConnections(options.maxConnections);
  auto state = std::make_unique<State>(options, std::move(handler), std::move(errorBody));
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

void HttpServer::run() {
  state->acceptAny();
  state->context.run();
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
}

size_t HttpServer::exchanges() const { return state->shared.exchanges; }

void HttpServer::stop() { state->context.stop(); }

} // namespace mica::rt::serve
