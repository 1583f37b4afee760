// The HTTP API: which paths there are, and who may use them.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_API_H
#define MICA_BACKENDS_RUNTIME_SERVE_API_H

#include "backends/runtime/serve/CompletionRequest.h"
#include "backends/runtime/serve/EngineThread.h"
#include "backends/runtime/serve/HttpServer.h"
#include "backends/runtime/serve/Metrics.h"
#include "backends/runtime/serve/TaskThread.h"

#include <concepts>
#include <map>

namespace mica::rt::serve {

class Completion;

class Api {
public:
  struct Options {
    std::vector<std::string> keys;              ///< Any of them is required; empty: none.
    std::chrono::milliseconds requestTimeout{}; ///< 0: none
  };

  /// `engine` and `reader`, which reads large requests, must live until the last request has been
  /// handled.
  Api(ServedModel model, EngineThread &engine, TaskThread &reader, uint64_t cacheBytes,
      Options options);

  /// Answers a request, now or later.
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange);
  /// The same while there is no Api yet, because the model is being loaded.
  static void handleWhileLoading(const HttpRequest &request, Exchange &exchange);
  /// The body of an answer to what is no HTTP.
  static std::string errorBody(unsigned status, const std::string &message);
  /// From now on no request for completions is accepted, and /health says so.
  void drain() { draining = true; }
  /// Ends the completions in progress with an error.
  void abort();

private:
  using Handler = void (Api::*)(HttpRequest &request, std::shared_ptr<Exchange> exchange);
  struct Route {
    const char *method;
    Handler handler;
    const char *summary;
    /// Of the body; null: the path takes none.
    Json (*body)(const ServedModel &model) = nullptr;
    const char *contentType = "application/json"; ///< Of the answer.
    std::vector<unsigned> statuses = {};          ///< Besides those that all routes have.
    bool open = false;                            ///< Needs no key.
  };
  static const std::map<std::string_view, Route> &routes();

  bool isAllowed(const std::string &authorization) const;
  /// Calls `act` with what `read` makes of a request's body, which it may take, on the server's
  /// thread. `read` is called on another thread where the body is so large that others' answers
  /// would wait for it; it may use what does not change after construction.
  template <std::invocable<const std::string &> Read, typename Act>
  void readBody(HttpRequest &request, const std::shared_ptr<Exchange> &exchange, Read read,
                Act act);
  void complete(Endpoint endpoint, HttpRequest &request, std::shared_ptr<Exchange> exchange);

  void chatCompletions(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
    complete(Endpoint::ChatCompletions, request, std::move(exchange));
  }
  void completions(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
    complete(Endpoint::Completions, request, std::move(exchange));
  }
  using BodyReader = std::variant<Json, ApiError> (Api::*)(const std::string &body) const;
  /// Replies with what `read` makes of a request's body; see readBody.
  void replyRead(HttpRequest &request, const std::shared_ptr<Exchange> &exchange, BodyReader read);
  Json modelEntry() const;
  /// {"tokens": [...]} and {"content": TEXT} of the bodies of /tokenize and /detokenize.
  std::variant<Json, ApiError> tokensOf(const std::string &body) const;
  std::variant<Json, ApiError> textOf(const std::string &body) const;
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
  TaskThread &reader;
  uint64_t cacheBytes;
  Options options;
  Metrics metrics;
  const int64_t started;
  bool draining = false;
  std::vector<std::weak_ptr<Completion>> unfinished; ///< In progress, and a few that have ended.
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_API_H
