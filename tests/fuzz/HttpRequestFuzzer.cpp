// Bytes that a client sends to the server: any number of requests, or none. Replies are HTTP; the
// connection ends when the client has sent everything, and nothing remains reserved.
#include "backends/runtime/serve/HttpConnection.h"

#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>

using namespace mica::rt::serve;

static HttpConnections newServer() {
  return {.options = {.maxBodyBytes = 100 << 10, .maxHeaderBytes = 1000, .maxReservedBytes = 0},
          .handler =
              [](HttpRequest request, std::shared_ptr<Exchange> exchange) {
                // Replies of both kinds, at once and after an event.
                if (request.path.size() % 3 == 0)
                  return exchange->reply({.body = request.method + request.path + request.body});
                exchange->onDisconnect([] {});
                exchange->post([exchange, body = std::move(request.body)] {
                  exchange->beginStream("text/plain");
                  exchange->send(body);
                  exchange->endStream();
                });
              },
          .headerCheck = [](const HttpRequest &header) -> std::optional<HttpReply> {
            if (header.path.starts_with("/no"))
              return HttpReply{.status = 401, .body = "no"};
            return std::nullopt;
          },
          .rejected = [](unsigned) {}};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
    std::abort();
  HttpConnections shared = newServer();
  std::string replies;
  {
    boost::asio::io_context context{1};
    serveConnection(HttpSocket(context, boost::asio::generic::stream_protocol(AF_UNIX, 0), ends[0]),
                    shared);
    std::string_view rest(reinterpret_cast<const char *>(data), size);
    // The client sends as much as the socket takes and reads all replies, until the server closes.
    for (bool isOpen = true; isOpen;) {
      if (!rest.empty()) {
        ssize_t sent = ::send(ends[1], rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent > 0)
          rest.remove_prefix(static_cast<size_t>(sent));
        else if (errno != EAGAIN)
          rest = {};
      }
      if (rest.empty())
        ::shutdown(ends[1], SHUT_WR);
      context.restart();
      context.poll();
      char buffer[4096];
      ssize_t got;
      while ((got = ::recv(ends[1], buffer, sizeof buffer, 0)) > 0)
        replies.append(buffer, static_cast<size_t>(got));
      isOpen = got < 0 && errno == EAGAIN;
    }
    ::close(ends[1]);
    context.restart();
    context.poll();
    if (shared.connections != 0 || shared.exchanges != 0 || shared.memory.used() != 0)
      std::abort();
  }
  if (!replies.empty() && !replies.starts_with("HTTP/1.1 "))
    std::abort();
  return 0;
}
