// A completion request in progress: converts the engine's tokens to OpenAI's JSON.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_COMPLETION_H
#define MICA_BACKENDS_RUNTIME_SERVE_COMPLETION_H

#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/serve/CompletionRequest.h"
#include "backends/runtime/serve/EngineThread.h"
#include "backends/runtime/serve/HttpExchange.h"
#include "backends/runtime/serve/InProgress.h"
#include "backends/runtime/serve/Metrics.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>

namespace mica::rt::serve {

class Completion final : public InProgress, public std::enable_shared_from_this<Completion> {
public:
  /// What is kept until the request has ended, and its answer has been sent.
  struct Memory {
    std::shared_ptr<const Reservation> request, answer;
  };
  /// `model` and `engine` must outlive it.
  Completion(const CompletionRequest &request, const ServedModel &model, EngineThread &engine,
             std::shared_ptr<RequestMetrics> metrics, std::shared_ptr<Exchange> exchange,
             Memory memory);
  ~Completion() override;

  /// Submits all choices without waiting for them. The exchange gets its reply when they have
  /// ended, or events while they are generated; a stream without an event for `pingInterval` gets a
  /// comment, so that its connection does not look dead (0: none). With `logPrompts`, the prompts
  /// are written to stderr if the request is accepted, as one line of JSON.
  void start(std::vector<Tokens> prompts, std::chrono::milliseconds timeout,
             std::chrono::milliseconds pingInterval, bool logPrompts);

  void abort(const ApiError &error, Outcome outcome) override {
    fail(error, outcome);
    cancel();
  }

  /// An estimate of the size of the answer if it has as many tokens as it may have; 0 for a stream,
  /// which is not buffered. The memory in use is at most kAnswerFactor times as much.
  static uint64_t answerBytes(const CompletionRequest &request, const Manifest &manifest);
  /// The memory that the prompts and settings of a request take until it has ended.
  static uint64_t requestBytes(const CompletionRequest &request);

private:
  class Choice;

  /// Cancels all choices; what the current step generates for them is discarded. Called on the
  /// server's thread when the request has ended.
  void cancel();
  bool submit(const std::vector<std::shared_ptr<const Tokens>> &prompts);
  void report(const std::vector<std::shared_ptr<const Tokens>> &prompts) const;
  Json envelope(bool chunk) const;
  Json usage() const;
  void sendEvent(const Json &event);
  void ping();
  void choiceEnded(int64_t choice, const RequestResult &result);
  void choiceFailed(const std::exception &problem);
  std::string takeBody();
  void reply();
  void finish();
  bool hasEnded() const;
  bool end(Outcome outcome);
  void fail(const ApiError &error, Outcome outcome);

  const Endpoint endpoint;
  const bool stream, includeUsage;
  const bool isSeeded;                         ///< by the client
  const std::shared_ptr<const Request> common; ///< of all choices
  const int64_t numChoices;
  const std::optional<int64_t> topLogprobs;
  const std::vector<std::string> tools;
  const bool parallelCalls, startsInReasoning;
  Memory memory;
  const ServedModel &model;
  EngineThread &engine;
  const std::shared_ptr<RequestMetrics> metrics;
  const std::shared_ptr<Exchange> exchange;
  const std::string id;
  const int64_t created;

  std::vector<std::unique_ptr<Choice>> choices; ///< of all prompts, until they are submitted
  std::vector<Scheduler::RequestId> ids;        ///< used only on the server's thread
  std::atomic<bool> isCanceled = false;
  mutable std::mutex mutex; ///< protects the following members
  size_t unended = 0;
  bool answered = false; ///< a stream has begun
  bool ended = false;    ///< nothing may be sent any more, except by those who set it
  bool isQuiet = true;   ///< no event has been sent since the last ping
  std::optional<Error> failure;
  int64_t promptTokens = 0, cachedTokens = 0, completionTokens = 0;
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_COMPLETION_H
