#include "backends/runtime/serve/Api.h"
#include "tests/unit/backends/runtime/FakeModelFixture.h"
#include "tests/unit/backends/runtime/serve/ByteModel.h"

#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <map>

using namespace mica;
using namespace mica::rt;
using namespace mica::rt::serve;
using namespace mica::test;
using testing::HasSubstr;

namespace {
/// Runs callbacks at once. The reply has been sent when `onReply` returns.
struct FakeExchange : Exchange {
  void reply(HttpReply sent) override {
    if (onReply)
      onReply(sent);
    sent.reservation.reset();
    end.set_value(std::move(sent));
  }
  void beginStream(std::string) override {}
  void send(std::string) override {}
  void endStream() override {}
  void post(std::function<void()> callback) override {
    if (onPost)
      onPost();
    callback();
  }
  void onDisconnect(std::function<void()> callback) override {
    if (leaves)
      disconnected = std::move(callback);
  }
  void onTimeout(std::chrono::milliseconds, std::function<void()> callback) override {
    timedOut = std::move(callback);
  }
  void every(std::chrono::milliseconds, std::function<void()>) override {}

  std::function<void()> onPost, disconnected, timedOut;
  std::function<void(HttpReply &)> onReply;
  bool leaves = false; ///< the test calls `disconnected`
  std::promise<HttpReply> end;
};

class ApiTest : public FakeModelFixture {
protected:
  void SetUp() override {
    FakeModelFixture::SetUp();
    auto started = EngineThread::start(*model, {.slots = 2, .promptRows = 4}, 2);
    ASSERT_TRUE(started) << started.error().message;
    engine = *std::move(started);
    readers = std::make_unique<TaskThreads>();
  }
  void TearDown() override {
    engine.reset();
    readers.reset();
  }

  void open(const ServedModel &served, Api::Options options = {}) {
    api.emplace(served, *engine, *readers, 0, std::move(options));
  }
  std::string manifest() const override { return fakeManifest("", fakeVocab, 1000); }
  /// The fake model has no tokenizer.
  void openFake(Api::Options options) {
    open({.name = "fake", .manifest = model->manifest(), .text = nullptr, .chatTemplate = nullptr},
         std::move(options));
  }
  void post(const std::string &path, std::string body, std::shared_ptr<Exchange> exchange) {
    auto reservation = std::make_shared<Reservation>(memory);
    ASSERT_TRUE(reservation->resize(reservedFor(body.size())));
    api->handle({.method = "POST",
                 .path = path,
                 .authorization = {},
                 .host = {},
                 .origin = {},
                 .contentEncoding = {},
                 .body = std::move(body),
                 .reservation = std::move(reservation)},
                std::move(exchange));
  }
  static HttpReply replyOf(FakeExchange &exchange) {
    std::future<HttpReply> end = exchange.end.get_future();
    EXPECT_EQ(end.wait_for(std::chrono::seconds(60)), std::future_status::ready);
    return end.get();
  }

  /// The outcomes of all requests so far; those that are not listed have none.
  void expectOutcomes(const std::map<std::string, int> &expected) {
    auto exchange = std::make_shared<FakeExchange>();
    api->handle({.method = "GET",
                 .path = "/metrics",
                 .authorization = {},
                 .host = {},
                 .origin = {},
                 .contentEncoding = {},
                 .body = {}},
                exchange);
    const std::string text = replyOf(*exchange).body, label = "mica_requests_total{outcome=\"";
    std::map<std::string, int> counts;
    for (size_t at = 0; (at = text.find(label, at)) != text.npos;) {
      at += label.size();
      size_t end = text.find('"', at);
      if (int count = std::stoi(text.substr(text.find(' ', end))); count != 0)
        counts[text.substr(at, end - at)] = count;
    }
    EXPECT_EQ(counts, expected);
  }

  /// Of a request.
  const std::string body =
      R"({"prompt": [1, 5], "max_tokens": 4, "temperature": 0, "ignore_eos": true})";
  MemoryBudget memory{1 << 20};
  std::unique_ptr<EngineThread> engine;
  std::unique_ptr<TaskThreads> readers;
  std::optional<Api> api;
};

/// An answer counts as large until it has been sent, not until its request has left the engine.
TEST_F(ApiTest, AnAnswerThatHasBeenSentIsNotKept) {
  // A token has 16 bytes.
  Api::Options options;
  options.maxAnswerBytes = 100;
  openFake(options);
  auto first = std::make_shared<FakeExchange>(), early = std::make_shared<FakeExchange>(),
       second = std::make_shared<FakeExchange>();
  first->onReply = [&](HttpReply &reply) {
    post("/v1/completions", body, early);
    reply.reservation.reset();
    post("/v1/completions", body, second);
  };
  post("/v1/completions", body, first);
  EXPECT_EQ(replyOf(*first).status, 200u);
  HttpReply busy = replyOf(*early);
  EXPECT_EQ(busy.status, 429u);
  EXPECT_THAT(busy.body, HasSubstr("too many large answers"));
  EXPECT_EQ(replyOf(*second).status, 200u);
}

/// A request that gets an error because the process ends has one reply and one outcome, although
/// the engine completes its answer.
TEST_F(ApiTest, AbortedRequests) {
  openFake({});
  auto exchange = std::make_shared<FakeExchange>();
  int replies = 0;
  exchange->onReply = [&](HttpReply &) { ++replies; };
  std::promise<void> aborted;
  exchange->onPost = [&] { aborted.get_future().wait(); };
  post("/v1/completions", body, exchange);
  api->abort({.status = 500, .message = "a rank has failed"}, Outcome::Failed);
  HttpReply reply = replyOf(*exchange);
  EXPECT_EQ(reply.status, 500u);
  EXPECT_THAT(reply.body, HasSubstr("a rank has failed"));
  expectOutcomes({{"failed", 1}});
  aborted.set_value();
  while (exchange.use_count() > 1)
    std::this_thread::yield();
  EXPECT_EQ(replies, 1);
  expectOutcomes({{"failed", 1}});
}

/// At a deadline, requests end at once, although the engine is in the middle of a step.
TEST_F(ApiTest, ErrorsDoNotWaitForTheEngine) {
  Api::Options options;
  options.requestTimeout = std::chrono::hours(1);
  openFake(options);
  auto complete = std::make_shared<FakeExchange>(), late = std::make_shared<FakeExchange>(),
       left = std::make_shared<FakeExchange>(), aborted = std::make_shared<FakeExchange>();
  std::promise<void> reached, resume;
  complete->onPost = [&] {
    reached.set_value();
    resume.get_future().wait();
  };
  post("/v1/completions", body, complete);
  reached.get_future().wait();
  left->leaves = true;
  for (const auto &exchange : {late, left, aborted})
    post("/v1/completions", body, exchange);
  late->timedOut();
  EXPECT_EQ(replyOf(*late).status, 504u);
  left->disconnected();
  expectOutcomes({{"timeout", 1}, {"canceled", 1}});
  api->abort(shuttingDown(), Outcome::Shutdown);
  // The answer of the first one was complete, but has not been sent.
  for (const auto &exchange : {complete, aborted})
    EXPECT_EQ(replyOf(*exchange).status, 503u);
  late->timedOut();
  const std::map<std::string, int> all = {{"timeout", 1}, {"canceled", 1}, {"shutdown", 2}};
  expectOutcomes(all);
  resume.set_value();
  for (const auto *exchange : {&complete, &late, &left, &aborted}) {
    (*exchange)->disconnected = (*exchange)->timedOut = nullptr; // which own the request
    while (exchange->use_count() > 1)
      std::this_thread::yield();
  }
  expectOutcomes(all);
}

/// Bodies that wait to be parsed, or are being parsed, get an error at once, and are not parsed.
TEST_F(ApiTest, UnreadBodies) {
  openFake({});
  const std::string body = R"({"prompt": [1, 5], "max_tokens": 1})" + std::string(100000, ' ');
  std::promise<void> resume;
  readers->add(1, [ready = resume.get_future().share()] { ready.wait(); });
  auto aborted = std::make_shared<FakeExchange>(), failed = std::make_shared<FakeExchange>(),
       left = std::make_shared<FakeExchange>(), late = std::make_shared<FakeExchange>(),
       other = std::make_shared<FakeExchange>();
  left->leaves = true;
  post("/v1/completions", body, left);
  std::exchange(left->disconnected, nullptr)();
  post("/tokenize", body, other);
  post("/v1/completions", body, aborted);
  for (int i = 0; i < 2; ++i)
    api->abort(shuttingDown(), Outcome::Shutdown);
  HttpReply reply = replyOf(*aborted);
  EXPECT_EQ(reply.status, 503u);
  EXPECT_THAT(reply.body, HasSubstr("the server is shutting down"));
  EXPECT_EQ(replyOf(*other).status, 503u);
  post("/v1/completions", body, failed);
  api->abort({.status = 500, .message = "a rank has failed"}, Outcome::Failed);
  EXPECT_EQ(replyOf(*failed).status, 500u);
  // It is parsed after the others.
  post("/v1/completions", body, late);
  api->drain();
  resume.set_value();
  EXPECT_EQ(replyOf(*late).status, 503u);
  // From now on, requests are rejected by their headers, and counted with those.
  auto rejected = std::make_shared<FakeExchange>();
  post("/tokenize", body, rejected);
  EXPECT_EQ(replyOf(*rejected).status, 503u);
  expectOutcomes({{"canceled", 1}, {"shutdown", 2}, {"failed", 1}});
}

/// What a request takes while it waits is reserved in place of its body.
TEST_F(ApiTest, PromptsAreReserved) {
  openFake({});
  const std::string body =
      Json{{"prompt", std::vector<Tokens>(2, Tokens(600, 5))}, {"n", 2}, {"max_tokens", 1}}.dump();
  auto exchange = std::make_shared<FakeExchange>();
  uint64_t reserved = 0;
  exchange->onReply = [&](HttpReply &) { reserved = memory.used(); };
  post("/v1/completions", body, exchange);
  EXPECT_EQ(replyOf(*exchange).status, 200u);
  EXPECT_EQ(reserved, 2 * 600 * sizeof(int32_t));
  engine.reset();
  EXPECT_EQ(memory.used(), 0u);
}

/// The texts of replies are made by the thread that reads large bodies, and are reserved.
TEST_F(ApiTest, RepliesAreReserved) {
  const ByteModel bytes(1 << 20);
  open(bytes.served());
  const std::string text(20000, 'a');
  uint64_t others = 0;
  auto replyTo = [&](const std::string &path, std::string body, bool expectsReservation = true) {
    while (memory.used() > others) // the request before
      std::this_thread::yield();
    auto exchange = std::make_shared<FakeExchange>();
    uint64_t posted = 0, replied = 0;
    exchange->onPost = [&] { posted = memory.used(); };
    exchange->onReply = [&](HttpReply &) { replied = memory.used(); };
    post(path, std::move(body), exchange);
    HttpReply reply = replyOf(*exchange);
    if (expectsReservation) {
      EXPECT_EQ(posted, reply.body.size()) << path;
      EXPECT_EQ(replied, reply.body.size()) << path;
    }
    return reply;
  };
  HttpReply tokens = replyTo("/tokenize", Json{{"content", text}}.dump());
  EXPECT_EQ(tokens.status, 200u);
  EXPECT_EQ(Json::parse(tokens.body)["tokens"].size(), text.size());
  HttpReply back = replyTo("/detokenize", tokens.body);
  EXPECT_EQ(Json::parse(back.body), Json({{"content", text}}));
  EXPECT_EQ(replyTo("/tokenize", R"({"content": ""})", false).body, R"({"tokens":[]})");

  Reservation other(memory);
  others = memory.max() - 30000;
  while (!other.resize(others))
    std::this_thread::yield();
  HttpReply busy = replyTo("/tokenize", Json{{"content", text}}.dump(), false);
  EXPECT_EQ(busy.status, 503u);
  EXPECT_THAT(busy.headers, testing::Contains(testing::Pair("Retry-After", "1")));
  other.resize(others = 0);
  HttpReply large = replyTo("/tokenize", Json{{"content", std::string(600000, 'a')}}.dump(), false);
  EXPECT_EQ(large.status, 413u);
  EXPECT_THAT(large.body, HasSubstr("send less"));
  readers.reset();
  EXPECT_EQ(memory.used(), 0u);
}
} // namespace

TEST_F(ApiTest, TextNeedsATokenizer) {
  openFake({});
  auto errorOf = [&](const std::string &path, const Json &body) {
    auto exchange = std::make_shared<FakeExchange>();
    post(path, body.dump(), exchange);
    HttpReply reply = replyOf(*exchange);
    EXPECT_EQ(reply.status, 400u);
    return Json::parse(reply.body)["error"]["message"].get<std::string>();
  };
  const std::string hint = "the program has no tokenizer; put the tokenizer's files into the "
                           "model's folder and compile it again, or pass ids ";
  EXPECT_EQ(errorOf("/tokenize", {{"content", "a"}}), hint + "to /v1/completions");
  EXPECT_EQ(errorOf("/detokenize", {{"tokens", {1}}}), hint + "to /v1/completions");
  EXPECT_EQ(errorOf("/v1/completions", {{"prompt", "a"}}), hint + "as the 'prompt'");
}
