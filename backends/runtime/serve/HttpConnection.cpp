#include "backends/runtime/serve/HttpConnection.h"
#include "backends/runtime/serve/ApiError.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <deque>
#include <new>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>

namespace mica::rt::serve {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using Stream = beast::basic_stream<asio::generic::stream_protocol>;

/// Of a request that follows another one.
static constexpr size_t firstBytes = 512;
/// Of an unread request, at once.
static constexpr size_t discardBytes = 16 << 10;

namespace {
/// A body in a string that grows as bytes arrive. With Beast's own one, a client takes memory for
/// all bytes that it announces.
struct GrowingBody {
  using value_type = std::string;

  class reader {
  public:
    template <bool isRequest, typename Fields>
    reader(http::header<isRequest, Fields> &, std::string &body) : body(body) {}
    void init(const boost::optional<uint64_t> &, error_code &error) { error = {}; }
    template <typename Buffers> size_t put(const Buffers &buffers, error_code &error) {
      error = {};
      try {
        for (asio::const_buffer buffer : beast::buffers_range_ref(buffers))
          body.append(static_cast<const char *>(buffer.data()), buffer.size());
      } catch (const std::bad_alloc &) {
        // The reply needs memory as well.
        std::string().swap(body);
        error = asio::error::no_memory;
        return 0;
      }
      return beast::buffer_bytes(buffers);
    }
    void finish(error_code &error) { error = {}; }

  private:
    std::string &body;
  };
};

/// A connection and its exchange in progress. Everything runs on the server's thread; functions of
/// Exchange post to it.
class Connection final : public HttpReceiver, public std::enable_shared_from_this<Connection> {
public:
  Connection(HttpSocket socket, HttpConnections &shared)
      : stream(std::move(socket)), timer(stream.get_executor()), ticks(stream.get_executor()),
        polls(stream.get_executor()), shared(shared),
        buffer(std::max<size_t>(shared.options.maxHeaderBytes, discardBytes) + firstBytes),
        pendingReservation(shared.pending) {
    ++shared.connections;
  }
  ~Connection() override {
    shared.receiving.erase(this);
    --shared.connections;
    shared.exchanges -= inExchange; // a handler has failed with an exception
  }

  void read();
  void reject();
  void endReceiving(bool always) override;

  void reply(HttpReply reply);
  void beginStream(const std::string &contentType);
  void send(std::string bytes);
  void endStream();
  /// The exchange is in progress.
  bool isOpen() const { return inExchange; }
  /// Calls `work`; an exception is the reply.
  template <typename Work> void attempt(Work work) {
    try {
      work();
    } catch (const std::exception &failure) {
      reply(errorReply(internalError(failure)));
    }
  }
  void setOnDisconnect(std::function<void()> callback) {
    if (closed)
      callback();
    else
      onDisconnect = std::move(callback);
  }
  void setOnTimeout(std::chrono::milliseconds time, std::function<void()> callback);
  void repeat(std::chrono::milliseconds interval, std::function<void()> callback);

  /// The unique number of the exchange in progress.
  uint64_t number() const { return exchangeNumber; }
  asio::any_io_executor executor() { return stream.get_executor(); }

private:
  void readHeader();
  void headerRead(uint64_t bytes);
  bool reserve();
  void limitBody();
  void readBody();
  void handle();
  void replyUnread(HttpReply reply);
  void replyError(const ApiError &error) {
    shared.rejected(error.status);
    replyUnread(errorReply(error));
  }
  void fail(error_code error);
  void beginExchange();
  void watch();
  void watchUnread();
  void queue(std::string bytes);
  void write();
  void finish();
  void linger();
  void disconnect();

  Stream stream;
  asio::steady_timer timer;        ///< of a body, then of setOnTimeout
  asio::steady_timer ticks, polls; ///< of repeat and watchUnread
  HttpConnections &shared;
  beast::flat_buffer buffer; ///< of a header, and of parts of bodies
  std::optional<http::request_parser<GrowingBody>> parser;
  uint64_t headerBytes = 0;        ///< of the request being received
  std::deque<std::string> pending; ///< bytes to write; the first entry is being written
  size_t written = 0;              ///< bytes of the first entry
  size_t pendingBytes = 0;         ///< not yet written
  Reservation pendingReservation;  ///< of a stream; above kFreeBytes
  uint64_t exchangeNumber = 0;
  bool inExchange = false, keepAlive = false, chunked = false, ended = false, closed = false;
  bool headOnly = false;          ///< the reply is sent without its body
  bool isUnread = false;          ///< the client may still be sending the request
  bool isLate = false;            ///< the time for the body is over
  std::optional<HttpReply> early; ///< to the request that is being received, see endReceiving
  bool isHttp10 = false;          ///< the client uses HTTP/1.0
  size_t discarded = 0;           ///< bytes received after the reply
  std::shared_ptr<Reservation> reservation;            ///< of the request
  std::shared_ptr<const Reservation> replyReservation; ///< of a reply that has its own
  std::function<void()> onDisconnect;
};

/// The exchange with a given number on a connection.
class ConnectionExchange final : public Exchange {
public:
  explicit ConnectionExchange(std::shared_ptr<Connection> connection)
      : connection(std::move(connection)), number(this->connection->number()) {}
  /// Whatever thread releases the exchange, the connection is destroyed on the server's thread.
  ~ConnectionExchange() override {
    asio::any_io_executor executor = connection->executor();
    asio::post(executor, [connection = std::move(connection)] {});
  }

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
        c.attempt(callback);
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
  void every(std::chrono::milliseconds interval, std::function<void()> callback) override {
    act([interval, callback = std::move(callback)](Connection &c) mutable {
      c.repeat(interval, std::move(callback));
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

static int hexDigit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/// Whether two strings are equal except for the case of ASCII letters. beast::iequals of Boost 1.81
/// reads a byte past the end of strings that are, unless they are equal.
static bool equalsIgnoringCase(std::string_view a, std::string_view b) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

/// The authority of a request's target that is a complete URL, as for proxies (RFC 9112, 3.2).
static std::optional<std::string_view> authorityOf(std::string_view target) {
  for (std::string_view scheme : {"http://", "https://"})
    if (equalsIgnoringCase(target.substr(0, scheme.size()), scheme)) {
      target.remove_prefix(scheme.size());
      return target.substr(0, target.find_first_of("/?"));
    }
  return std::nullopt;
}

/// The path of a request's target, which is a path with a query or a complete URL. A percent sign
/// without two digits is kept.
static std::string pathOf(std::string_view target) {
  if (std::optional<std::string_view> authority = authorityOf(target)) {
    target.remove_prefix(static_cast<size_t>(authority->end() - target.begin()));
    if (!target.starts_with('/'))
      return "/";
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

static std::string_view targetOf(const http::request_header<> &header) {
  return {header.target().data(), header.target().size()};
}

/// The value of a field. Several fields of a name are a list (RFC 9110, 5.3), so that none is
/// ignored.
static std::string valueOf(const http::request_header<> &header, http::field name) {
  auto [begin, end] = header.equal_range(name);
  std::string value;
  for (auto field = begin; field != end; ++field)
    value += (field == begin ? "" : ", ") + std::string(field->value());
  return value;
}

/// A request without its body.
static HttpRequest headerOf(const http::request_header<> &header) {
  std::string_view target = targetOf(header);
  bool head = header.method() == http::verb::head;
  std::optional<std::string_view> authority = authorityOf(target);
  return {.method = head ? "GET" : std::string(header.method_string()),
          .path = pathOf(target),
          .authorization = valueOf(header, http::field::authorization),
          .host = authority ? std::string(*authority) : valueOf(header, http::field::host),
          .origin = valueOf(header, http::field::origin),
          .contentEncoding = valueOf(header, http::field::content_encoding),
          .body = {}};
}

static bool expectsContinue(const http::request_header<> &header) {
  return header.version() >= 11 &&
         equalsIgnoringCase(valueOf(header, http::field::expect), "100-continue");
}

/// The error for a header that does not say what is requested, or asks for what there is not.
static std::optional<ApiError> problemOf(const http::request_header<> &header) {
  // A proxy may decide by another one of several hosts (RFC 9112, 3.2).
  size_t hosts = header.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && header.version() >= 11))
    return ApiError{.status = 400,
                    .message = hosts ? "the request has several Host fields; send one"
                                     : "the request has no Host field"};
  if (std::optional<std::string_view> authority = authorityOf(targetOf(header));
      authority && authority->empty())
    return ApiError{.status = 400, .message = "the URL of the request has no host"};
  // HTTP/1.0 has no expectations (RFC 9110, 10.1.1).
  if (std::string expected = valueOf(header, http::field::expect);
      !expected.empty() && header.version() >= 11 && !expectsContinue(header))
    return ApiError{.status = 417,
                    .message =
                        "the expectation '" + expected + "' is not supported, only 100-continue"};
  // The end of a body in another coding is unknown.
  std::string coding = valueOf(header, http::field::transfer_encoding);
  if (!coding.empty() && !equalsIgnoringCase(coding, "chunked"))
    return ApiError{.status = 501, .message = "no transfer coding but chunked is supported"};
  return std::nullopt;
}

void Connection::read() {
  parser.emplace();
  parser->body_limit(shared.options.maxBodyBytes);
  parser->header_limit(shared.options.maxHeaderBytes);
  if (buffer.size() != 0) {
    stream.expires_after(shared.options.receiveTimeout);
    return readHeader();
  }
  buffer.shrink_to_fit(); // the connection may be idle for a long time
  // The timeout of the first header starts with the connection, that of others with their first
  // byte.
  bool isFirst = exchangeNumber == 0;
  stream.expires_after(isFirst ? shared.options.receiveTimeout : shared.options.idleTimeout);
  stream.async_read_some(buffer.prepare(firstBytes),
                         [self = shared_from_this(), isFirst](error_code error, size_t count) {
                           if (error)
                             return self->disconnect();
                           self->buffer.commit(count);
                           if (!isFirst)
                             self->stream.expires_after(self->shared.options.receiveTimeout);
                           self->readHeader();
                         });
}

void Connection::endReceiving(bool always) {
  if (!parser || early)
    return; // it has its reply
  if (parser->is_header_done())
    early = shared.headerCheck(headerOf(parser->get()));
  if (!early && always) {
    early = errorReply(shuttingDown());
    shared.rejected(early->status);
  }
  if (early)
    stream.cancel(); // the handlers of reads then send the reply
}

/// Replies to the client without reading its request.
void Connection::reject() {
  replyError({.status = 503,
              .message = "the server has " + std::to_string(shared.options.maxConnections) +
                         " open connections, the most that --max-connections allows; close some, "
                         "or try again later",
              .retryAfter = 1});
}

void Connection::readHeader() {
  shared.receiving.insert(this);
  http::async_read_header(stream, buffer, *parser,
                          [self = shared_from_this()](error_code error, size_t bytes) {
                            if (error)
                              self->fail(error);
                            else
                              self->headerRead(bytes);
                          });
}

/// Checks a header that has been received, unless the request is small, and continues with the
/// body.
void Connection::headerRead(uint64_t bytes) {
  headerBytes = bytes;
  if (early)
    return fail({});
  if (std::optional<ApiError> problem = problemOf(parser->get()))
    return replyError(*problem);
  bool isLarge = headerBytes > kFreeBytes || parser->chunked() ||
                 parser->content_length().value_or(0) > kFreeBytes;
  if (isLarge || !shared.accepting)
    if (std::optional<HttpReply> rejection = shared.headerCheck(headerOf(parser->get())))
      return replyUnread(*std::move(rejection));
  reservation = std::make_shared<Reservation>(shared.memory);
  if (!reserve())
    return;
  parser->eager(true);
  limitBody();
  if (!expectsContinue(parser->get()))
    return readBody();
  static constexpr std::string_view continueReply = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(stream, asio::buffer(continueReply),
                    [self = shared_from_this()](error_code error, size_t) {
                      error ? self->fail(error) : self->readBody();
                    });
}

/// Reserves memory for what has been received; returns false if there is none, and the request is
/// rejected. Small ones need none: with the buffer, which has at most the size of a header, they
/// bound the memory of a connection.
bool Connection::reserve() {
  uint64_t bytes = reservedFor(headerBytes) + reservedFor(parser->get().body().size());
  if (reservation->resize(bytes))
    return true;
  replyError(reservation->canHold(bytes) ? tooManyLargeRequests() : tooLargeRequest(bytes));
  return false;
}

/// Ends the reading of a body after the timeout. That of the stream would close it, without a
/// reply.
void Connection::limitBody() {
  stream.expires_never();
  timer.expires_after(shared.options.receiveTimeout);
  timer.async_wait([self = shared_from_this(), number = exchangeNumber](error_code error) {
    if (error || self->closed || self->exchangeNumber != number)
      return;
    self->isLate = true;
    self->stream.cancel();
  });
}

void Connection::readBody() {
  if (parser->is_done())
    return handle();
  if (isLate || early)
    return fail({});
  http::async_read_some(stream, buffer, *parser,
                        [self = shared_from_this()](error_code error, size_t) {
                          if (error)
                            self->fail(error);
                          else if (self->reserve())
                            self->readBody();
                        });
}

/// A request could not be read. A header that is late has no reply: the timeout has closed the
/// stream.
void Connection::fail(error_code error) {
  if (early)
    replyUnread(*std::exchange(early, std::nullopt));
  else if (isLate)
    replyError({.status = 408,
                .message = "the body has not arrived within " +
                           std::to_string(shared.options.receiveTimeout.count()) +
                           " s; send it faster, or raise --receive-timeout"});
  else if (error == http::error::body_limit)
    replyError({.status = 413,
                .message = "the body has more than " + std::to_string(shared.options.maxBodyBytes) +
                           " bytes"});
  else if (error == http::error::header_limit)
    replyError({.status = 431,
                .message = "the header has more than " +
                           std::to_string(shared.options.maxHeaderBytes) + " bytes"});
  else if (error == asio::error::no_memory)
    replyError(tooManyLargeRequests());
  else if (error.category() == make_error_code(http::error::bad_method).category() &&
           error != http::error::end_of_stream && error != http::error::partial_message)
    replyError({.status = 400, .message = "the request is not HTTP/1.1: " + error.message()});
  else
    disconnect();
}

/// Replies to a request that has not been read completely.
void Connection::replyUnread(HttpReply unread) {
  shared.receiving.insert(this);
  beginExchange();
  parser.reset();
  reservation.reset();
  keepAlive = false;
  headOnly = false;
  isUnread = true;
  reply(std::move(unread));
}

void Connection::beginExchange() {
  timer.cancel();
  isLate = false;
  ++exchangeNumber;
  ++shared.exchanges;
  inExchange = true;
  ended = false;
}

void Connection::handle() {
  http::request<GrowingBody> got = parser->release();
  early.reset();
  shared.receiving.erase(this);
  beginExchange();
  keepAlive = got.keep_alive();
  isHttp10 = got.version() < 11;
  chunked = !isHttp10;
  headOnly = got.method() == http::verb::head;
  stream.expires_never();
  watch();
  HttpRequest request = headerOf(got);
  request.body = std::move(got.body());
  reservation->resize(reservedFor(request.body.size()));
  request.reservation = reservation;
  auto exchange = std::make_shared<ConnectionExchange>(shared_from_this());
  attempt([&] { shared.handler(std::move(request), exchange); });
}

/// Detects that a client disconnects before its exchange is over. One that only ends its direction
/// looks the same, and is taken to have left. What it sends meanwhile, a pipelined request, is kept
/// up to the size of a header; more than that is not read, so its end is not seen by reading.
void Connection::watch() {
  if (buffer.size() >= shared.options.maxHeaderBytes)
    return watchUnread();
  stream.socket().async_wait(HttpSocket::wait_read, [self = shared_from_this(),
                                                     number = exchangeNumber](error_code error) {
    if (error || !self->inExchange || self->exchangeNumber != number || self->closed)
      return;
    auto space = self->buffer.prepare(firstBytes);
    ssize_t got =
        ::recv(self->stream.socket().native_handle(), space.data(), space.size(), MSG_DONTWAIT);
    // Readable without bytes: the client has ended its direction.
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK))
      return self->disconnect();
    self->buffer.commit(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    self->watch();
  });
}

/// Asio does not wait for the end of a client's direction alone.
void Connection::watchUnread() {
  polls.expires_after(std::chrono::seconds(1));
  polls.async_wait([self = shared_from_this(), number = exchangeNumber](error_code error) {
    if (error || !self->inExchange || self->exchangeNumber != number || self->closed)
      return;
    pollfd polled{self->stream.socket().native_handle(), POLLRDHUP, 0};
    if (::poll(&polled, 1, 0) > 0)
      return self->disconnect();
    self->watchUnread();
  });
}

void Connection::setOnTimeout(std::chrono::milliseconds time, std::function<void()> callback) {
  if (!inExchange)
    return;
  timer.expires_after(time);
  timer.async_wait([self = shared_from_this(), number = exchangeNumber,
                    callback = std::move(callback)](error_code error) {
    if (!error && self->inExchange && self->exchangeNumber == number)
      callback();
  });
}

void Connection::repeat(std::chrono::milliseconds interval, std::function<void()> callback) {
  if (!inExchange)
    return;
  ticks.expires_after(interval);
  ticks.async_wait([self = shared_from_this(), number = exchangeNumber, interval,
                    callback = std::move(callback)](error_code error) {
    if (error || self->exchangeNumber != number)
      return;
    self->repeat(interval, callback);
    callback();
  });
}

/// As in RFC 9110, section 5.6.7: "Sun, 06 Nov 1994 08:49:37 GMT".
static std::string httpDate() {
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[40];
  return {text, std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

/// What replies and streams have in common. Answers must not be stored by caches.
static void setCommon(http::fields &fields, const std::string &contentType) {
  fields.set(http::field::date, httpDate());
  fields.set(http::field::server, "mica/" MICA_VERSION);
  fields.set(http::field::cache_control, "no-store");
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
  if (keepAlive && isHttp10) // the default of HTTP/1.0 is to close
    response.set(http::field::connection, "keep-alive");
  response.body() = std::move(reply.body);
  response.prepare_payload();
  std::ostringstream header;
  header << response.base();
  std::string text = std::move(header).str();
  std::string body = headOnly ? std::string() : std::move(response.body());
  ended = true;
  chunked = false;
  replyReservation = std::move(reply.reservation);
  // A large body is not copied.
  constexpr size_t smallBody = 64 << 10;
  if (body.size() <= smallBody)
    return queue(text + body);
  queue(std::move(text));
  queue(std::move(body));
}

void Connection::beginStream(const std::string &contentType) {
  if (!inExchange || ended)
    return;
  http::response_header<> header;
  header.version(11);
  header.result(http::status::ok);
  setCommon(header, contentType);
  header.set("X-Accel-Buffering", "no"); // nginx would wait for more
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
  size_t total = pendingBytes + bytes.size();
  if (total > shared.options.maxPendingBytes || !pendingReservation.resize(reservedFor(total)))
    return disconnect();
  queue(std::move(bytes));
}

void Connection::endStream() {
  if (!inExchange || ended)
    return;
  ended = true;
  if (chunked)
    queue("0\r\n\r\n");
  else if (pending.empty()) // otherwise after everything has been written
    finish();
}

/// Writes `bytes` after the pending ones.
void Connection::queue(std::string bytes) {
  pendingBytes += bytes.size();
  pending.push_back(std::move(bytes));
  if (pending.size() == 1)
    write();
}

/// Writes a part of the pending bytes, and then the rest. The timeout is for each part: a client
/// may read slowly.
void Connection::write() {
  stream.expires_after(shared.options.sendTimeout);
  stream.async_write_some(asio::buffer(pending.front()) + written,
                          [self = shared_from_this()](error_code error, size_t count) {
                            if (self->closed)
                              return;
                            if (error)
                              return self->disconnect();
                            self->stream.expires_never();
                            self->pendingBytes -= count;
                            self->pendingReservation.resize(std::min(
                                self->pendingReservation.size(), reservedFor(self->pendingBytes)));
                            self->written += count;
                            if (self->written == self->pending.front().size()) {
                              self->pending.pop_front();
                              self->written = 0;
                            }
                            if (!self->pending.empty())
                              self->write();
                            else if (self->ended)
                              self->finish();
                          });
}

/// Called when an exchange has been written completely.
void Connection::finish() {
  inExchange = false;
  --shared.exchanges;
  onDisconnect = nullptr;
  reservation.reset();
  replyReservation.reset();
  timer.cancel();
  ticks.cancel();
  polls.cancel();
  if (keepAlive)
    return read();
  if (isUnread)
    return linger();
  disconnect();
}

/// Closes only the sending direction, and discards what the client is still sending: closing a
/// connection with unread bytes may discard the reply before the client reads it.
void Connection::linger() {
  constexpr size_t limit = size_t(64) << 20;
  if (discarded == 0) {
    error_code ignored;
    stream.socket().shutdown(HttpSocket::shutdown_send, ignored);
    stream.expires_after(
        std::min<std::chrono::seconds>(shared.options.receiveTimeout, std::chrono::seconds(2)));
  }
  buffer.clear();
  stream.async_read_some(buffer.prepare(discardBytes),
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
  shared.receiving.erase(this);
  error_code ignored;
  stream.socket().shutdown(HttpSocket::shutdown_both, ignored);
  stream.close();
  timer.cancel();
  ticks.cancel();
  polls.cancel();
  reservation.reset();
  replyReservation.reset();
  pendingReservation.resize(0);
  if (!inExchange)
    return;
  inExchange = false;
  --shared.exchanges;
  if (auto callback = std::exchange(onDisconnect, nullptr))
    callback();
}
} // namespace

void serveConnection(HttpSocket socket, HttpConnections &shared) {
  auto connection = std::make_shared<Connection>(std::move(socket), shared);
  shared.connections > shared.options.maxConnections ? connection->reject() : connection->read();
}

} // namespace mica::rt::serve
