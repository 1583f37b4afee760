#include "backends/runtime/serve/HttpConnection.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <new>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace mica::rt::serve;
using testing::HasSubstr;
using testing::StartsWith;

namespace {
/// A server that replies with `reply` to every request.
struct TestServer {
  explicit TestServer(HttpOptions options, std::string reply = "ok")
      : shared{.options = std::move(options),
               .handler =
                   [reply = std::move(reply)](HttpRequest, std::shared_ptr<Exchange> exchange) {
                     exchange->reply({.body = reply});
                   },
               .headerCheck = [](const HttpRequest &header) -> std::optional<HttpReply> {
                 if (header.path == "/no")
                   return HttpReply{.status = 401, .body = "no"};
                 return std::nullopt;
               },
               .rejected = [this](unsigned status) { rejections.push_back(status); }} {}

  /// The descriptor of a new client.
  int connect() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    serveConnection(HttpSocket(context, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[0]),
                    shared);
    return ends[1];
  }
  void send(int client, std::string_view text) {
    while (!text.empty()) {
      ssize_t sent = ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
      text.remove_prefix(static_cast<size_t>(std::max<ssize_t>(sent, 0)));
      poll();
    }
  }
  void poll() {
    context.restart();
    context.poll();
  }
  /// What has arrived at a client.
  std::string received(int client) {
    poll();
    std::string all(1 << 16, 0);
    ssize_t got = ::recv(client, all.data(), all.size(), 0);
    all.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
    return all;
  }

  std::vector<unsigned> rejections; ///< the statuses
  HttpConnections shared;
  boost::asio::io_context context{1};
};

std::string header(size_t bytes, size_t body, const char *path = "/") {
  std::string text = "POST " + std::string(path) +
                     " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body) + "\r\nX: ";
  return text + std::string(bytes - text.size() - 4, 'a') + "\r\n\r\n";
}
} // namespace

/// What has been received of unfinished requests is part of a limited total, and released at the
/// end.
TEST(HttpConnection, ReservesWhatHasArrived) {
  TestServer server({.maxBodyBytes = 65536, .maxReservedBytes = 200000});
  const MemoryBudget &memory = server.shared.memory;
  EXPECT_THAT(server.received([&] {
    int client = server.connect();
    server.send(client, header(100, 4096) + std::string(4096, 'a'));
    return client;
  }()),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(memory.used(), 0u);

  std::vector<int> clients;
  auto begin = [&](const std::string &text) {
    clients.push_back(server.connect());
    server.send(clients.back(), text);
    return server.received(clients.back());
  };
  // Announced bytes are not reserved, and a body may have any length until its end.
  const std::string chunked = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(begin(header(100, 65536)), "");
    EXPECT_EQ(begin(chunked + "1000\r\n" + std::string(4096, 'a') + "\r\n"), "");
  }
  EXPECT_EQ(memory.used(), 0u);
  EXPECT_EQ(begin(chunked + "1388\r\n" + std::string(5000, 'a')), "");
  EXPECT_EQ(memory.used(), 5000u);
  EXPECT_EQ(begin(header(100, 65536) + std::string(65000, 'a')), "");
  EXPECT_EQ(begin(header(10000, 65536) + std::string(65000, 'a')), "");
  EXPECT_EQ(begin(header(10000, 5)), "");
  EXPECT_EQ(memory.used(), 5000u + 2 * 65000 + 20000);
  // Rejected by its header: without a reservation.
  EXPECT_THAT(begin(header(100, 65536, "/no")), StartsWith("HTTP/1.1 401 "));
  // The total is reached in the middle of a body, which is released.
  EXPECT_THAT(begin(header(100, 65536) + std::string(60000, 'a')),
              testing::AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Retry-After: 1\r\n"),
                             HasSubstr("too many large requests")));
  EXPECT_EQ(memory.used(), 5000u + 2 * 65000 + 20000);
  EXPECT_THAT(server.rejections, testing::ElementsAre(503));
  server.send(clients[41], std::string(536, 'a'));
  EXPECT_THAT(server.received(clients[41]), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(memory.used(), 5000u + 65000 + 20000);
  server.send(clients[40], "\r\n0\r\n\r\n");
  EXPECT_THAT(server.received(clients[40]), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(memory.used(), 65000u + 20000);
  for (int client : clients)
    ::close(client);
  server.poll();
  EXPECT_EQ(memory.used(), 0u);
}

/// A body that does not arrive in time is rejected with a reply, and counted; a header is not.
TEST(HttpConnection, LateBodies) {
  TestServer server({.receiveTimeout = std::chrono::seconds(1)});
  auto endOf = [&](std::string_view text, std::string_view more = "") {
    int client = server.connect();
    server.send(client, text);
    server.context.restart();
    server.context.run_for(std::chrono::milliseconds(500));
    server.send(client, more);
    server.context.restart();
    server.context.run_for(std::chrono::milliseconds(700));
    std::string reply = server.received(client);
    ::close(client);
    server.poll();
    return reply;
  };
  auto late = testing::AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("Connection: close\r\n"),
                             HasSubstr("the body has not arrived within 1 s; send it faster, or "
                                       "raise --receive-timeout"));
  EXPECT_THAT(endOf(header(100, 5)), late);
  // The time is for the whole body.
  EXPECT_THAT(endOf(header(100, 5) + "ab", "cd"), late);
  EXPECT_THAT(
      endOf("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "cd"), late);
  EXPECT_THAT(
      endOf("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"),
      StartsWith("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 408 "));
  EXPECT_THAT(server.rejections, testing::ElementsAre(408, 408, 408, 408));
  EXPECT_EQ(endOf("POST / HTTP/1.1\r\nHost: a\r\n"), "");
  EXPECT_EQ(server.rejections.size(), 4U);
  // On a busy machine, the time may be over.
  std::string inTime;
  for (int attempt = 0; attempt < 20 && !inTime.starts_with("HTTP/1.1 200 "); ++attempt)
    inTime = endOf(header(100, 5) + "ab", "cde");
  EXPECT_THAT(inTime, StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(server.shared.connections, 0U);
  EXPECT_EQ(server.shared.exchanges, 0U);
}

/// Bodies arrive as they were sent, with a length or in chunks.
TEST(HttpConnection, ReadsBodies) {
  std::string got;
  TestServer server({});
  server.shared.handler = [&](HttpRequest request, std::shared_ptr<Exchange> exchange) {
    got = request.body;
    exchange->reply({.body = "ok"});
  };
  std::string body;
  for (int i = 0; body.size() < 300000; ++i)
    body += std::to_string(i);
  int client = server.connect();
  server.send(client, header(100, body.size()) + body);
  EXPECT_THAT(server.received(client), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(got, body);
  std::string chunks = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (size_t at = 0; at < body.size(); at += 10000) {
    size_t size = std::min<size_t>(10000, body.size() - at);
    char length[20];
    std::snprintf(length, sizeof length, "%zx\r\n", size);
    chunks += length + body.substr(at, size) + "\r\n";
  }
  got.clear();
  server.send(client, chunks + "0\r\n\r\n");
  EXPECT_THAT(server.received(client), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(got, body);
  ::close(client);
}

/// A handler may reserve memory for a reply, in place of the body, until the reply has been sent.
TEST(HttpConnection, RepliesAreReserved) {
  const std::string reply(8 << 20, 'a');
  TestServer server({});
  MemoryBudget others(reply.size());
  server.shared.handler = [&](HttpRequest request, std::shared_ptr<Exchange> exchange) {
    EXPECT_EQ(server.shared.memory.used(), 5000u);
    EXPECT_TRUE(request.reservation->resize(100));
    auto own = std::make_shared<Reservation>(others);
    EXPECT_TRUE(own->resize(reply.size()));
    exchange->reply({.body = reply, .reservation = std::move(own)});
  };
  int client = server.connect();
  server.send(client, header(100, 5000) + std::string(5000, 'a'));
  server.poll();
  for (size_t rest = reply.size(); rest > 0;) {
    // The end is in the buffers of the socket.
    if (rest > reply.size() / 2) {
      EXPECT_EQ(server.shared.memory.used(), 100u);
      EXPECT_EQ(others.used(), reply.size());
    }
    size_t got = server.received(client).size();
    ASSERT_GT(got, 0u);
    rest -= std::min(rest, got);
  }
  server.poll();
  EXPECT_EQ(server.shared.memory.used() + others.used(), 0u);
  // A client that leaves needs nothing any more.
  server.send(client, header(100, 5000) + std::string(5000, 'a'));
  server.poll();
  EXPECT_EQ(others.used(), reply.size());
  ::close(client);
  server.poll();
  EXPECT_EQ(server.shared.memory.used() + others.used(), 0u);
}

/// A client may send many requests before it reads the first reply.
TEST(HttpConnection, ManyPipelinedRequests) {
  std::shared_ptr<Exchange> open;
  TestServer server({});
  server.shared.handler = [&](HttpRequest, std::shared_ptr<Exchange> exchange) {
    open = std::move(exchange);
  };
  int client = server.connect();
  // A large header: the buffer has its maximum size.
  const std::string first = header(9000, 100), more = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  server.send(client, first);
  std::string rest(100, 'a');
  while (rest.size() < 64 << 10)
    rest += more;
  ASSERT_GT(::send(client, rest.data(), rest.size(), MSG_NOSIGNAL), 32 << 10);
  EXPECT_NO_THROW(server.poll());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(open) << i;
    std::exchange(open, nullptr)->reply({.body = "ok"});
    EXPECT_THAT(server.received(client), StartsWith("HTTP/1.1 200 ")) << i;
  }
  open.reset();
  ::close(client);
  EXPECT_NO_THROW(server.poll());
}

/// Until the exchange is over, and not in the next one on the connection.
TEST(HttpConnection, RepeatedCallbacks) {
  TestServer server({});
  int ticks = 0, requests = 0;
  server.shared.handler = [&](HttpRequest, std::shared_ptr<Exchange> exchange) {
    if (++requests > 1)
      return exchange->reply({.body = "second"});
    exchange->beginStream("text/plain");
    exchange->every(std::chrono::milliseconds(1), [&ticks, exchange] {
      exchange->send("tick");
      if (++ticks == 3)
        exchange->endStream();
    });
  };
  int client = server.connect();
  server.send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  std::string all;
  while (!all.ends_with("0\r\n\r\n")) {
    server.context.restart();
    server.context.run_for(std::chrono::milliseconds(1));
    all += server.received(client);
  }
  EXPECT_THAT(all, HasSubstr("\r\nX-Accel-Buffering: no\r\n"));
  EXPECT_THAT(all, testing::EndsWith("\r\n\r\n4\r\ntick\r\n4\r\ntick\r\n4\r\ntick\r\n0\r\n\r\n"));
  server.send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  server.context.restart();
  server.context.run_for(std::chrono::milliseconds(20));
  EXPECT_THAT(server.received(client), testing::EndsWith("\r\n\r\nsecond"));
  EXPECT_EQ(ticks, 3);
  // A client that leaves ends the exchange.
  requests = ticks = 0;
  server.send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ::close(client);
  server.context.restart();
  server.context.run_for(std::chrono::milliseconds(20));
  EXPECT_LT(ticks, 3);
}

/// A client that does not read what is sent to it is disconnected if it has too much pending, or if
/// all clients together have.
TEST(HttpConnection, PendingBytesAreLimited) {
  constexpr size_t each = 4 << 20, total = 10 << 20;
  TestServer server({.maxPendingBytes = each, .maxTotalPendingBytes = total});
  std::vector<std::shared_ptr<Exchange>> streams;
  server.shared.handler = [&](HttpRequest, std::shared_ptr<Exchange> exchange) {
    exchange->beginStream("text/plain");
    streams.push_back(std::move(exchange));
  };
  std::vector<int> clients;
  auto open = [&] {
    clients.push_back(server.connect());
    server.send(clients.back(), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    server.poll();
  };
  auto send = [&](size_t stream, size_t bytes) {
    for (size_t sent = 0; sent < bytes; sent += 64 << 10) {
      streams[stream]->send(std::string(64 << 10, 'a'));
      server.poll();
    }
  };
  auto isOpen = [&](size_t stream) {
    bool called = false;
    streams[stream]->post([&] { called = true; });
    server.poll();
    return called;
  };
  // A part is in the socket's buffer.
  open();
  send(0, 2 * each);
  EXPECT_FALSE(isOpen(0));
  EXPECT_EQ(server.shared.pending.used(), 0U);
  // Clients with less than `each` reach the total.
  size_t last = 0;
  while (server.shared.pending.used() <= total - each && last < 20) {
    open();
    send(++last, each - (each >> 3));
    EXPECT_TRUE(isOpen(last));
  }
  open();
  send(++last, each);
  EXPECT_FALSE(isOpen(last));
  EXPECT_TRUE(isOpen(1));
  // One that has read everything takes nothing of the total, and can be sent more.
  uint64_t before = server.shared.pending.used();
  for (size_t received = 0; received < each - (each >> 3);) {
    received += server.received(clients[1]).size();
    server.poll();
  }
  EXPECT_LT(server.shared.pending.used(), before);
  send(1, 128 << 10);
  EXPECT_TRUE(isOpen(1));
  for (int client : clients)
    ::close(client);
  server.poll();
  streams.clear();
  server.poll();
  EXPECT_EQ(server.shared.pending.used(), 0U);
}

TEST(HttpConnection, AnExceptionOfAHandlerIsTheReply) {
  TestServer server({});
  server.shared.handler = [](HttpRequest, std::shared_ptr<Exchange>) { throw std::bad_alloc(); };
  int client = server.connect();
  server.send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(server.received(client),
              testing::AllOf(StartsWith("HTTP/1.1 500 "),
                             HasSubstr("\"message\":\"the server is out of memory\"")));
  ::close(client);
  server.poll();
}

/// The timeout is for a client that takes nothing. A slow one gets everything.
TEST(HttpConnection, SlowReaders) {
  const std::string reply(2 << 20, 'a');
  constexpr auto pause = std::chrono::milliseconds(100);
  auto receivedIn = [&](size_t pieces, bool stops) {
    TestServer server({.sendTimeout = std::chrono::seconds(1)}, reply);
    int client = server.connect();
    server.send(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    size_t total = 0;
    std::string piece(reply.size() / pieces, 0);
    for (size_t i = 0; i < 2 * pieces && total < reply.size(); ++i) {
      ssize_t got = stops && i == 1 ? 0 : ::recv(client, piece.data(), piece.size(), 0);
      total += static_cast<size_t>(std::max<ssize_t>(got, 0));
      server.context.restart();
      server.context.run_for(stops && i == 1 ? 30 * pause : pause);
    }
    ::close(client);
    return total;
  };
  // On a busy machine, a pause may be longer than the timeout.
  size_t slow = 0;
  for (int attempt = 0; attempt < 20 && slow < reply.size(); ++attempt)
    slow = receivedIn(30, false);
  EXPECT_GE(slow, reply.size());
  EXPECT_LT(receivedIn(30, true), reply.size());
}
