#include "backends/runtime/serve/Completion.h"
#include "backends/runtime/engine/LogProbabilities.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Seconds.h"
#include "backends/runtime/text/TextStream.h"

#include <cinttypes>
#include <cstdio>

namespace mica::rt::serve {

namespace {
std::string newId(Endpoint endpoint) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, drawSeed());
  return (endpoint == Endpoint::ChatCompletions ? "chatcmpl-" : "cmpl-") + std::string(digits);
}

const char *finishReason(Finish finish) {
  return finish == Finish::Length || finish == Finish::ContextFull ? "length" : "stop";
}
} // namespace

/// One completion of one prompt. Its functions run on the engine's thread.
class Completion::Choice final : public RequestListener {
public:
  Choice(Completion &completion, int64_t index, const Tokens &prompt)
      : completion(completion), index(index) {
    if (const ProgramTokenizer *tokenizer = completion.model.text)
      decoded.emplace(tokenizer->decoderAfter(prompt), completion.settings.stops);
  }

  Result<bool> token(int32_t token, std::span<const float> logits) override;
  bool shouldContinue() override { return !completion.gone; }
  void finished(const RequestResult &result) override;

  /// The choice as a whole.
  Json toJson() const;

private:
  bool isChat() const { return completion.endpoint == Endpoint::ChatCompletions; }
  Json tokenEntry(int32_t token, double logprob) const;
  void addLogprobs(int32_t token, std::span<const float> logits);
  Json logprobsJson() const;
  void sendPiece(const std::string &piece, const char *reason);

  Completion &completion;
  const int64_t index;
  std::optional<TextStream> decoded;
  std::string text;
  Json logprobs = Json::array(); ///< Of the tokens that no event has had.
  bool begun = false;
  Clock::time_point last = Clock::now();
  const char *reason = "stop";
};

Json Completion::Choice::tokenEntry(int32_t token, double logprob) const {
  std::string spelled =
      completion.model.text ? completion.model.text->textOf(token) : std::to_string(token);
  Json entry = {{"token", spelled}, {"logprob", logprob}, {"bytes", Json()}};
  // A partial character has no text.
  if (spelled.find("\xEF\xBF\xBD") == spelled.npos)
    entry["bytes"] = std::vector<uint8_t>(spelled.begin(), spelled.end());
  return entry;
}

void Completion::Choice::addLogprobs(int32_t token, std::span<const float> logits) {
  if (!completion.topLogprobs || logits.empty())
    return;
  LogProbabilities found =
      logProbabilities(logits, token, static_cast<size_t>(*completion.topLogprobs));
  Json entry = tokenEntry(token, found.chosen);
  entry["top_logprobs"] = Json::array();
  for (auto [other, logprob] : found.top)
    entry["top_logprobs"].push_back(tokenEntry(other, logprob));
  logprobs.push_back(std::move(entry));
}

/// In the form of the endpoint.
Json Completion::Choice::logprobsJson() const {
  if (!completion.topLogprobs)
    return {};
  if (isChat())
    return {{"content", logprobs}};
  Json out = {{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", Json::array()}};
  for (const Json &entry : logprobs) {
    out["tokens"].push_back(entry["token"]);
    out["token_logprobs"].push_back(entry["logprob"]);
    Json top = Json::object();
    for (const Json &other : entry["top_logprobs"])
      top[other["token"].get<std::string>()] = other["logprob"];
    out["top_logprobs"].push_back(std::move(top));
  }
  return out;
}

void Completion::Choice::sendPiece(const std::string &piece, const char *finished) {
  Json choice = {{"index", index}};
  if (isChat()) {
    Json delta = Json::object();
    if (!begun)
      delta["role"] = "assistant";
    if (!begun || !piece.empty())
      delta["content"] = piece;
    choice["delta"] = std::move(delta);
  } else {
    choice["text"] = piece;
  }
  begun = true;
  choice["logprobs"] = logprobs.empty() ? Json() : logprobsJson();
  logprobs = Json::array();
  choice["finish_reason"] = finished ? Json(finished) : Json();
  Json event = completion.envelope(/*chunk=*/true);
  event["choices"] = Json::array({std::move(choice)});
  completion.sendEvent(event);
}

Result<bool> Completion::Choice::token(int32_t token, std::span<const float> logits) {
  Clock::time_point now = Clock::now();
  if (begun)
    completion.metrics.observeTokenGap(secondsBetween(last, now));
  else
    completion.metrics.observeFirstToken(secondsBetween(completion.arrived, now));
  last = now;
  bool first = !begun;
  begun |= !completion.stream;
  addLogprobs(token, logits);
  std::string piece =
      decoded ? decoded->push(token) : (text.empty() ? "" : " ") + std::to_string(token);
  text += piece;
  if (completion.stream && (first || !piece.empty()))
    sendPiece(piece, nullptr);
  return !completion.gone && (!decoded || !decoded->stopped());
}

void Completion::Choice::finished(const RequestResult &result) {
  std::string rest = decoded ? decoded->finish() : "";
  text += rest;
  reason = finishReason(result.finish);
  if (completion.stream && result.finish != Finish::Failed && !completion.gone)
    sendPiece(rest, reason);
  completion.choiceEnded(result);
}

Json Completion::Choice::toJson() const {
  Json choice = {{"index", index}};
  if (isChat())
    choice["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", Json()}};
  else
    choice["text"] = text;
  choice["logprobs"] = logprobsJson();
  choice["finish_reason"] = reason;
  return choice;
}

Completion::Completion(const CompletionRequest &request, const ServedModel &model,
                       EngineThread &engine, Metrics &metrics, std::shared_ptr<Exchange> exchange)
    : endpoint(request.endpoint), stream(request.stream), includeUsage(request.includeUsage),
      settings(request.settings), numChoices(request.numChoices), topLogprobs(request.topLogprobs),
      model(model), engine(engine), metrics(metrics), exchange(std::move(exchange)),
      id(newId(request.endpoint)), created(unixSeconds()) {}

Completion::~Completion() = default;

void Completion::start(std::vector<Tokens> prompts, std::chrono::milliseconds timeout) {
  exchange->onDisconnect([self = shared_from_this()] { self->stop(/*timeout=*/false); });
  if (timeout.count() > 0)
    exchange->onTimeout(timeout, [self = shared_from_this()] { self->stop(/*timeout=*/true); });
  submit(std::move(prompts));
}

void Completion::submit(std::vector<Tokens> prompts) {
  uint64_t seed = settings.seed.value_or(drawSeed());
  std::vector<EngineThread::Submission> wanted;
  for (Tokens &prompt : prompts) {
    promptTokens += static_cast<int64_t>(prompt.size());
    for (int64_t n = 0; n < numChoices; ++n) {
      choices.push_back(
          std::make_unique<Choice>(*this, static_cast<int64_t>(choices.size()), prompt));
      Request request{.prompt = prompt,
                      .settings = settings,
                      .stream = static_cast<uint64_t>(n),
                      .maxReused = static_cast<int64_t>(prompt.size())};
      request.settings.seed = seed;
      // The choices live as long as this.
      wanted.emplace_back(std::move(request), std::shared_ptr<RequestListener>(
                                                  shared_from_this(), choices.back().get()));
    }
  }
  unended = wanted.size();
  auto submitted = engine.submit(std::move(wanted));
  if (!submitted)
    return fail({.message = submitted.error().message}, "refused");
  if (!*submitted)
    return fail({.status = 429, .message = "too many requests are waiting, try again later"},
                "busy");
  ids = std::move(**submitted);
}

void Completion::stop(bool timeout) {
  timedOut = timeout;
  gone = true;
  for (Scheduler::RequestId id : ids)
    engine.cancel(id);
}

Json Completion::envelope(bool chunk) const {
  bool chat = endpoint == Endpoint::ChatCompletions;
  return {{"id", id},
          {"object", !chat   ? "text_completion"
                     : chunk ? "chat.completion.chunk"
                             : "chat.completion"},
          {"created", created},
          {"model", model.name}};
}

Json Completion::usage() const {
  return {{"prompt_tokens", promptTokens},
          {"completion_tokens", completionTokens},
          {"total_tokens", promptTokens + completionTokens},
          {"prompt_tokens_details", {{"cached_tokens", cachedTokens}}}};
}

/// Server-sent events.
void Completion::sendEvent(const Json &event) {
  bool first = false;
  {
    std::lock_guard lock(mutex);
    first = !std::exchange(answered, true);
  }
  if (first)
    exchange->beginStream("text/event-stream");
  exchange->send("data: " + toJsonText(event) + "\n\n");
}

void Completion::choiceEnded(const RequestResult &result) {
  bool all = false;
  {
    std::lock_guard lock(mutex);
    completionTokens += static_cast<int64_t>(result.tokens.size());
    cachedTokens += result.reusedTokens;
    if (result.finish == Finish::Failed)
      failure = result.error;
    all = --unended == 0;
  }
  metrics.countTokens(result.promptTokens, result.reusedTokens,
                      static_cast<int64_t>(result.tokens.size()));
  if (all)
    finish();
}

void Completion::finish() {
  if (timedOut)
    return fail({.status = 504, .message = "the request took longer than the server allows"},
                "timeout");
  if (gone) {
    metrics.countRequest("cancelled");
    return;
  }
  if (failure)
    return fail({.status = 500, .message = failure->message}, "failed");
  metrics.countRequest("ok");
  if (!stream) {
    Json whole = envelope(/*chunk=*/false);
    whole["choices"] = Json::array();
    for (const auto &choice : choices)
      whole["choices"].push_back(choice->toJson());
    whole["usage"] = usage();
    return exchange->reply({.body = toJsonText(whole)});
  }
  if (includeUsage) {
    Json last = envelope(/*chunk=*/true);
    last["choices"] = Json::array();
    last["usage"] = usage();
    sendEvent(last);
  }
  exchange->send("data: [DONE]\n\n");
  exchange->endStream();
}

void Completion::fail(const ApiError &error, const char *outcome) {
  metrics.countRequest(outcome);
  bool begun = false;
  {
    std::lock_guard lock(mutex);
    begun = std::exchange(answered, true);
  }
  if (begun && stream) {
    exchange->send("data: " + toJsonText(error.toJson()) + "\n\n");
    exchange->endStream();
    return;
  }
  if (begun)
    return;
  HttpReply reply{.status = error.status, .body = toJsonText(error.toJson())};
  if (error.status == 429)
    reply.headers.emplace_back("Retry-After", "1");
  exchange->reply(std::move(reply));
}

} // namespace mica::rt::serve
