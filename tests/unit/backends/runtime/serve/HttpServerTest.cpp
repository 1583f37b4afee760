#include "backends/runtime/serve/HttpServer.h"

#include <csignal>
#include <gtest/gtest.h>
#include <new>
#include <optional>

using namespace mica::rt::serve;

/// Later signals and repeated callbacks arrive although earlier ones have failed.
TEST(HttpServer, AnExceptionOfACallbackEndsOnlyTheCall) {
  auto listening = HttpServer::listen(
      {.port = 0}, [](HttpRequest, std::shared_ptr<Exchange>) {},
      [](const HttpRequest &) { return std::optional<HttpReply>(); }, [](unsigned) {});
  ASSERT_TRUE(listening) << listening.error().message;
  HttpServer &server = **listening;
  int signals = 0, calls = 0;
  server.onSignal([&](int count) {
    signals = count;
    std::raise(SIGTERM);
    if (count < 3)
      throw std::bad_alloc();
    server.repeat(std::chrono::milliseconds(1), [&] {
      if (++calls < 3)
        throw std::bad_alloc();
      server.stop();
      return false;
    });
  });
  server.after(std::chrono::milliseconds(0), [] { std::raise(SIGTERM); });
  server.after(std::chrono::seconds(60), [&] { server.stop(); });
  server.run();
  EXPECT_GE(signals, 3);
  EXPECT_EQ(calls, 3);
}
