// The HTTP API: which paths there are, and who may use them.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_API_H
#define MICA_BACKENDS_RUNTIME_SERVE_API_H

#include "backends/runtime/serve/CompletionRequest.h"
#include "backends/runtime/serve/EngineThread.h"
#include "backends/runtime/serve/HttpServer.h"
#include "backends/runtime/serve/Metrics.h"

#include <map>

namespace mica::rt::serve {

class Api {
public:
  struct Options {
    std::vector<std::string> keys;              ///< Any of them is required; empty: none.
    std::chrono::milliseconds requestTimeout{}; ///< 0: none
  };

  /// `engine` must outlive it.
  Api(ServedModel model, EngineThread &engine, uint64_t cacheBytes, Options options);

  /// Answers a request, now or later.
  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange);
  /// The body of an answer to what is no HTTP.
  static std::string errorBody(unsigned status, const std::string &message);
  /// From now on no request for completions is accepted, and /health says so.
  void drain() { draining = true; }

private:
  using Handler = void (Api::*)(const HttpRequest &request, std::shared_ptr<Exchange> exchange);
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
  void complete(Endpoint endpoint, const HttpRequest &request, std::shared_ptr<Exchange> exchange);

  void chatCompletions(const HttpRequest &request, std::shared_ptr<Exchange> exchange) {
    complete(Endpoint::ChatCompletions, request, std::move(exchange));
  }
  void completions(const HttpRequest &request, std::shared_ptr<Exchange> exchange) {
    complete(Endpoint::Completions, request, std::move(exchange));
  }
  void models(const HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void health(const HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void metricsText(const HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void tokenize(const HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void page(const HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void openApi(const HttpRequest &request, std::shared_ptr<Exchange> exchange);
  void detokenize(const HttpRequest &request, std::shared_ptr<Exchange> exchange);

  ServedModel model;
  EngineThread &engine;
  uint64_t cacheBytes;
  Options options;
  Metrics metrics;
  const int64_t started;
  bool draining = false;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_API_H
