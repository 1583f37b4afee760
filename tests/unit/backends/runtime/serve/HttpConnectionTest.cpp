#include "backends/runtime/serve/HttpConnection.h"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>
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
               .errorBody = [](unsigned, const std::string &message) { return message; }} {}

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

  HttpConnections shared;
  boost::asio::io_context context{1};
};

std::string header(size_t bytes, size_t body, const char *path = "/") {
  std::string text = "POST " + std::string(path) +
                     " HTTP/1.1\r\nContent-Length: " + std::to_string(body) + "\r\nX: ";
  return text + std::string(bytes - text.size() - 4, 'a') + "\r\n\r\n";
}
} // namespace

/// Unfinished requests are part of a limited total, and release it.
TEST(HttpConnection, ReservesUnfinishedRequests) {
  TestServer server({.maxBodyBytes = 65536, .maxReservedBytes = 200000});
  EXPECT_THAT(server.received([&] {
    int client = server.connect();
    server.send(client, header(100, 4096) + std::string(4096, 'a'));
    return client;
  }()),
              StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(server.shared.reservedBytes, 0u);

  std::vector<int> clients;
  auto begin = [&](const std::string &text) {
    clients.push_back(server.connect());
    server.send(clients.back(), text);
    return server.received(clients.back());
  };
  EXPECT_EQ(begin(header(100, 4096)), "");
  EXPECT_EQ(server.shared.reservedBytes, 0u);
  EXPECT_EQ(begin(header(100, 65536) + std::string(65000, 'a')), "");
  EXPECT_EQ(server.shared.reservedBytes, 65536u);
  EXPECT_EQ(begin(header(10000, 65536) + std::string(65000, 'a')), "");
  EXPECT_EQ(begin(header(10000, 5)), "");
  EXPECT_EQ(server.shared.reservedBytes, 2 * 65536u + 20000);
  // Rejected by its header: without a reservation.
  EXPECT_THAT(begin(header(100, 65536, "/no")), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(begin(header(100, 65536)),
              testing::AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("too many large requests")));
  EXPECT_EQ(server.shared.reservedBytes, 2 * 65536u + 20000);
  server.send(clients[1], std::string(536, 'a'));
  EXPECT_THAT(server.received(clients[1]), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(server.shared.reservedBytes, 65536u + 20000);
  for (int client : clients)
    ::close(client);
  server.poll();
  EXPECT_EQ(server.shared.reservedBytes, 0u);
}

/// The timeout is for a client that takes nothing. A slow one gets everything.
TEST(HttpConnection, SlowReaders) {
  const std::string reply(2 << 20, 'a');
  constexpr auto pause = std::chrono::milliseconds(100);
  auto receivedIn = [&](size_t pieces, bool stops) {
    TestServer server({.sendTimeout = std::chrono::seconds(1)}, reply);
    int client = server.connect();
    server.send(client, "GET / HTTP/1.1\r\n\r\n");
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
