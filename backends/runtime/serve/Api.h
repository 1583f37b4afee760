// The HTTP API: routes and authorization.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_API_H
#define MICA_BACKENDS_RUNTIME_SERVE_API_H

#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/serve/CompletionRequest.h"
#include "backends/runtime/serve/EngineThread.h"
#include "backends/runtime/serve/HttpExchange.h"
#include "backends/runtime/serve/InProgress.h"
#include "backends/runtime/serve/Metrics.h"
#include "backends/runtime/serve/TaskThread.h"

#include <concepts>
#include <map>
#include <stop_token>

namespace mica::rt::serve {

class Api {
public:
  static constexpr uint64_t kMaxAnswerBytes = uint64_t(256) << 20;

  struct Options {
    std::vector<std::string> keys;              ///< one of them is required; empty: no key is
                                                ///< required
    std::chrono::milliseconds requestTimeout{}; ///< 0: none
    std::chrono::milliseconds pingInterval{};   ///< see Completion::start
    bool logPrompts = false;                    ///< see Completion::start
    /// Reject requests to names other than "localhost" and `allowedHosts`, and those from pages of
    /// other servers.
    bool checkHosts = false;
    std::vector<std::string> allowedHosts = {}; ///< without ports
    /// Of answers in progress that are not streamed, see Completion::answerBytes.
    uint64_t maxAnswerBytes = kMaxAnswerBytes;
    /// Of a large body while it is parsed, tokenized, or converted to text; only one is at a time.
    uint64_t maxReadingBytes = UINT64_MAX;
  };

  /// `engine` and `readers`, the threads that parse large requests, must outlive all requests.
  Api(ServedModel model, EngineThread &engine, TaskThreads &readers, uint64_t cacheBytes,
      Options options);

  /// Answers a request, now or later.
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange);
  /// The reply to a request with an unknown path, another method, no valid key, another server's
  /// name, or an encoded body, and after drain to any with a body.
  std::optional<HttpReply> rejection(const HttpRequest &header);
  /// The reply to any request while the model is being loaded and there is no Api yet.
  static std::optional<HttpReply> rejectionWhileLoading(const HttpRequest &header);
  /// Whether a host, as in a URL, is this machine: "localhost", "127.0.0.1", "[::1]".
  static bool isLoopback(const std::string &host);
  /// Whether a host, as in a URL, is an IP address.
  static bool isAddress(const std::string &host);
  /// Counts a request that was rejected by a reply with this status before its body was parsed.
  void countRejection(unsigned status) { metrics.countRejection(status); }
  /// Rejects requests with a body from now on; /health reports this state.
  void drain() { draining = true; }
  /// Ends the requests in progress with an error, without waiting for the engine.
  void abort(const ApiError &error, Outcome outcome);

private:
  using Handler = void (Api::*)(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  struct Route {
    const char *method;
    Handler handler;
    const char *summary;
    /// schema of the body; null: no body
    Json (*body)(const ServedModel &model) = nullptr;
    Json (*examples)(const ServedModel &model) = nullptr; ///< of bodies; null: none
    /// Of the reply and of the events of a stream: names of replySchemas. Null: not described, no
    /// stream.
    const char *schema = nullptr, *eventSchema = nullptr;
    const char *contentType = "application/json"; ///< of the reply
    std::vector<unsigned> statuses = {};          ///< in addition to those of all routes
    bool open = false;                            ///< requires no key
  };
  static const std::map<std::string_view, Route> &routes();
  static const Route *findRoute(const std::string &path);

  std::optional<HttpReply> rejectedBy(const HttpRequest &header) const;
  bool isAllowed(const std::string &authorization) const;
  std::optional<HttpReply> hostRejection(const HttpRequest &header) const;
  /// Parses a request's body with `read` and calls `act` with the result or an error, which it may
  /// move from, on the server's thread. The request's reservation then has the size of the result.
  /// Bodies above `largeBody` bytes, which would delay other replies, are parsed on another thread;
  /// `read` may only use data that does not change after construction, and stops early if the
  /// client leaves, the time is over, or the server shuts down. `metrics`: null if it is not a
  /// request for completions.
  template <std::invocable<const std::string &, const std::stop_token &> Read, typename Act>
  void readBody(HttpRequest &request, const std::shared_ptr<Exchange> &exchange,
                std::shared_ptr<RequestMetrics> metrics, size_t largeBody, Read read, Act act);
  void add(const std::shared_ptr<InProgress> &request);
  void complete(Endpoint endpoint, HttpRequest &request, std::shared_ptr<Exchange> exchange);

  void chatCompletions(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
    complete(Endpoint::ChatCompletions, request, std::move(exchange));
  }
  void completions(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
    complete(Endpoint::Completions, request, std::move(exchange));
  }
  /// The text of the reply to a request's body.
  using BodyReader = std::variant<std::string, ApiError> (Api::*)(
      const std::string &body, const std::stop_token &stop) const;
  /// Replies with the result of `read` for a request's body; see readBody.
  void replyRead(HttpRequest &request, const std::shared_ptr<Exchange> &exchange, BodyReader read);
  Json modelEntry() const;
  /// The replies {"tokens": [...]} and {"content": TEXT} to /tokenize and /detokenize.
  std::variant<std::string, ApiError> tokensOf(const std::string &body,
                                               const std::stop_token &stop) const;
  std::variant<std::string, ApiError> textOf(const std::string &body,
                                             const std::stop_token &stop) const;
  void models(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void oneModel(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void health(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void metricsText(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void tokenize(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void page(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void openApi(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void detokenize(HttpRequest &request, std::shared_ptr<Exchange> exchange);

  ServedModel model;
  EngineThread &engine;
  TaskThreads &readers;
  uint64_t cacheBytes;
  Options options;
  MemoryBudget answers; ///< see Options::maxAnswerBytes
  Metrics metrics;
  const int64_t started;
  bool draining = false;
  std::vector<std::weak_ptr<InProgress>> unfinished; ///< and some that have ended
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_API_H
