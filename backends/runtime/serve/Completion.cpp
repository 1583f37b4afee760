#include "backends/runtime/serve/Completion.h"
#include "backends/runtime/engine/LogProbabilities.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/Seconds.h"
#include "backends/runtime/text/AnswerFormat.h"
#include "backends/runtime/text/AnswerReader.h"
#include "backends/runtime/text/TextStream.h"

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <iterator>
#include <limits>

namespace mica::rt::serve {

namespace {
std::string newId(Endpoint endpoint) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016" PRIx64, drawSeed());
  return (endpoint == Endpoint::ChatCompletions ? "chatcmpl-" : "cmpl-") + std::string(digits);
}

const char *finishReason(Finish finish, bool calls) {
  return finish == Finish::Length || finish == Finish::ContextFull ? "length"
         : calls                                                   ? "tool_calls"
                                                                   : "stop";
}

/// Nine letters and digits, as Mistral's templates require.
std::string newCallId() {
  static constexpr char letters[] = "0123456789abcdefghijklmnopqrstuvwxyz";
  std::string id;
  for (uint64_t rest = drawSeed(); id.size() < 9; rest /= 36)
    id += letters[rest % 36];
  return id;
}
} // namespace

/// One completion of one prompt. Its functions run on the engine's thread, except `sampled`.
class Completion::Choice final : public RequestListener {
public:
  /// `continuesText`: see ProgramTokenizer::hasText.
  Choice(Completion &completion, int64_t index, bool continuesText)
      : completion(completion), index(index),
        reader(isChat() ? completion.model.answers : AnswerFormat(), completion.tools,
               completion.startsInReasoning) {
    if (const ProgramTokenizer *tokenizer = completion.model.text)
      decoded.emplace(tokenizer->decoder(continuesText), completion.common->settings.stops);
  }

  void started() override { completion.metrics->start(); }
  Status sampled(int32_t token, std::span<const float> logits) override;
  Result<bool> token(int32_t token, std::span<const float> logits) override;
  bool shouldContinue() override { return !completion.isCanceled; }
  void finished(const RequestResult &result) override;

  /// Appends the complete choice as JSON to `out`, and frees it.
  void moveTo(std::string &out);
  /// About the size of the JSON.
  size_t size() const;

private:
  using Clock = std::chrono::steady_clock;

  bool isChat() const { return completion.endpoint == Endpoint::ChatCompletions; }
  Json tokenEntry(int32_t token, double logprob) const;
  void addLogprobs(int32_t token);
  size_t numSettled(bool ended) const;
  Json takeLogprobs(size_t count);
  void bufferLogprobs(bool ended);
  std::string markerText(int32_t token) const;
  bool add(std::vector<AnswerReader::Part> parts);
  void send(const Json &delta, const char *reason);

  Completion &completion;
  const int64_t index;
  AnswerReader reader;
  std::optional<TextStream> decoded;
  std::string text, reasoning;
  Json calls = Json::array();
  int64_t numTokens = 0;
  struct TokenLogprobs {
    Json entry;
    int64_t textOffset; ///< start of the token's text, in characters
  };
  std::optional<LogProbabilities> nextLogprobs; ///< of the sampled token that `token` adds
  std::vector<TokenLogprobs> logprobs; ///< of tokens that have neither been sent nor buffered
  /// The lists of takeLogprobs without brackets, as text: as Json, they would take 20 times as much
  /// memory.
  std::vector<std::pair<std::string, std::string>> bufferedLogprobs;
  bool begun = false, opened = false; ///< a token was generated; an event was sent
  bool complete = false;              ///< an unwanted call was generated: the answer ends before it
  Clock::time_point last = Clock::now();
  const char *reason = "stop";
};

/// OpenAI's notation for tokens that are not text, in /v1/completions: "bytes:\\xe2\\x80".
static std::string bytesText(std::string_view bytes) {
  std::string text = "bytes:";
  for (char byte : bytes) {
    char digits[5];
    std::snprintf(digits, sizeof digits, "\\x%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

Json Completion::Choice::tokenEntry(int32_t token, double logprob) const {
  const ProgramTokenizer *tokenizer = completion.model.text;
  if (!tokenizer)
    return {{"token", std::to_string(token)}, {"logprob", logprob}, {"bytes", Json()}};
  std::string bytes = tokenizer->bytesOf(token);
  if (!isChat())
    return {{"token", tokenizer->isText(token) ? tokenizer->textOf(token) : bytesText(bytes)},
            {"logprob", logprob}};
  return {{"token", tokenizer->textOf(token)},
          {"logprob", logprob},
          {"bytes", std::vector<uint8_t>(bytes.begin(), bytes.end())}};
}

Status Completion::Choice::sampled(int32_t token, std::span<const float> logits) {
  if (completion.topLogprobs)
    nextLogprobs = logProbabilities(logits, token, static_cast<size_t>(*completion.topLogprobs));
  return {};
}

/// Adds those of `sampled`.
void Completion::Choice::addLogprobs(int32_t token) {
  if (!nextLogprobs)
    return;
  LogProbabilities found = *std::exchange(nextLogprobs, {});
  Json entry = tokenEntry(token, found.chosen);
  entry["top_logprobs"] = Json::array();
  for (auto [other, logprob] : found.top)
    entry["top_logprobs"].push_back(tokenEntry(other, logprob));
  int64_t offset = decoded         ? decoded->characters()
                   : numTokens > 0 ? static_cast<int64_t>(text.size()) + 1
                                   : 0;
  logprobs.push_back({std::move(entry), offset});
}

/// The number of tokens at the beginning of `logprobs` that belong to the answer: those whose text
/// begins before the end of the text so far. Others may be part of a stop string, which is not
/// known before the answer has ended.
size_t Completion::Choice::numSettled(bool ended) const {
  if (!decoded || (ended && !decoded->stopped()))
    return logprobs.size();
  auto isOpen = [&](const TokenLogprobs &each) {
    return each.textOffset >= decoded->returnedCharacters();
  };
  return static_cast<size_t>(std::find_if(logprobs.begin(), logprobs.end(), isOpen) -
                             logprobs.begin());
}

/// Removes the first `count` tokens of `logprobs` and returns them in the format of the endpoint.
Json Completion::Choice::takeLogprobs(size_t count) {
  auto end = logprobs.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<TokenLogprobs> taken(std::make_move_iterator(logprobs.begin()),
                                   std::make_move_iterator(end));
  logprobs.erase(logprobs.begin(), end);
  if (isChat()) {
    Json content = Json::array();
    for (TokenLogprobs &each : taken)
      content.push_back(std::move(each.entry));
    return {{"content", std::move(content)}};
  }
  Json out = {{"tokens", Json::array()},
              {"token_logprobs", Json::array()},
              {"top_logprobs", Json::array()},
              {"text_offset", Json::array()}};
  for (const auto &[entry, offset] : taken) {
    out["tokens"].push_back(entry["token"]);
    out["token_logprobs"].push_back(entry["logprob"]);
    // Of tokens with the same text, the likeliest one is listed.
    Json top = Json::object();
    for (const Json &other : entry["top_logprobs"])
      top.emplace(other["token"].get<std::string>(), Json(other["logprob"]));
    top.emplace(entry["token"].get<std::string>(), Json(entry["logprob"]));
    out["top_logprobs"].push_back(std::move(top));
    out["text_offset"].push_back(offset);
  }
  return out;
}

/// Buffers the log probabilities of the tokens so far for the complete choice.
void Completion::Choice::bufferLogprobs(bool ended) {
  if (!completion.topLogprobs)
    return;
  const Json lists = takeLogprobs(numSettled(ended));
  if (bufferedLogprobs.empty())
    for (const auto &[name, list] : lists.items())
      bufferedLogprobs.emplace_back(name, "");
  size_t i = 0;
  for (const Json &list : lists) {
    std::string &joined = bufferedLogprobs[i++].second;
    for (const Json &entry : list)
      joined += (joined.empty() ? "" : ",") + toJsonText(entry);
  }
}

/// Sends an event. `delta` is the continuation of a message, or the text of a completion.
void Completion::Choice::send(const Json &delta, const char *finished) {
  Json choice = {{"index", index}};
  if (isChat()) {
    Json whole = Json::object();
    if (!opened)
      whole["role"] = "assistant";
    if (!opened && !delta.contains("content"))
      whole["content"] = "";
    whole.update(delta);
    choice["delta"] = std::move(whole);
  } else {
    choice["text"] = delta.value("content", "");
  }
  opened = true;
  size_t settled = numSettled(/*ended=*/finished != nullptr);
  choice["logprobs"] = settled == 0 ? Json() : takeLogprobs(settled);
  choice["finish_reason"] = finished ? Json(finished) : Json();
  Json event = completion.envelope(/*chunk=*/true);
  event["choices"] = Json::array({std::move(choice)});
  if (completion.includeUsage)
    event["usage"] = Json(); // the last event has it
  completion.sendEvent(event);
}

/// The text of a token. Special tokens have none, unless they are markers of the answer format.
std::string Completion::Choice::markerText(int32_t token) const {
  const AnswerFormat &format = completion.model.answers;
  const ProgramTokenizer *tokenizer = completion.model.text;
  if (!isChat() || !(format.reasoning || format.calls) || !tokenizer->isSpecial(token))
    return {};
  std::string mark = tokenizer->textOf(token);
  bool isMark =
      (format.reasoning && (mark == format.reasoning->begin || mark == format.reasoning->end)) ||
      (format.calls && !completion.tools.empty() &&
       (mark == format.calls->begin || mark == format.calls->end));
  return isMark ? mark : std::string();
}

/// Appends parts of the answer. Returns false if the answer must end with a call.
bool Completion::Choice::add(std::vector<AnswerReader::Part> parts) {
  if (complete)
    return false;
  for (AnswerReader::Part &part : parts) {
    Json delta = Json::object();
    switch (part.kind) {
    case AnswerReader::Part::Kind::Content:
      text += part.text;
      delta["content"] = std::move(part.text);
      break;
    case AnswerReader::Part::Kind::Reasoning:
      reasoning += part.text;
      delta["reasoning_content"] = std::move(part.text);
      break;
    case AnswerReader::Part::Kind::Call: {
      if (!completion.parallelCalls && !calls.empty()) {
        complete = true;
        return false;
      }
      Json call = {{"id", newCallId()},
                   {"type", "function"},
                   {"function", {{"name", std::move(part.text)}, {"arguments", ""}}}};
      Json numbered = {{"index", calls.size()}};
      numbered.update(call);
      delta["tool_calls"] = Json::array({std::move(numbered)});
      calls.push_back(std::move(call));
      break;
    }
    case AnswerReader::Part::Kind::Arguments:
      calls.back()["function"]["arguments"].get_ref<std::string &>() += part.text;
      delta["tool_calls"] = Json::array(
          {{{"index", calls.size() - 1}, {"function", {{"arguments", std::move(part.text)}}}}});
      break;
    }
    if (completion.stream)
      send(delta, nullptr);
  }
  return completion.parallelCalls || calls.empty() || reader.inArguments();
}

Result<bool> Completion::Choice::token(int32_t token, std::span<const float>) {
  Clock::time_point now = Clock::now();
  if (begun) {
    completion.metrics->all.countToken(secondsBetween(last, now));
  } else {
    completion.metrics->all.countFirstToken();
    completion.metrics->firstToken();
  }
  last = now;
  begun = true;
  addLogprobs(token);
  bool more = true;
  if (decoded) {
    std::string piece = decoded->push(token);
    if (std::string mark = markerText(token); !mark.empty())
      piece += decoded->pushText(mark);
    more = add(reader.push(piece)) && !decoded->stopped();
  } else {
    more = add(reader.push((numTokens++ == 0 ? "" : " ") + std::to_string(token)));
  }
  if (!completion.stream)
    bufferLogprobs(/*ended=*/false);
  else if (!opened)
    send(Json::object(), nullptr);
  return !completion.isCanceled && more;
}

void Completion::Choice::finished(const RequestResult &result) {
  try {
    if (decoded)
      add(reader.push(decoded->finish()));
    add(reader.finish());
    reason = finishReason(result.finish, !calls.empty());
    if (!completion.stream)
      bufferLogprobs(/*ended=*/true);
    else if (result.finish != Finish::Failed && !completion.isCanceled)
      send(isChat() ? Json::object() : Json{{"content", ""}}, reason);
  } catch (const std::exception &failure) {
    completion.choiceFailed(failure);
  }
  completion.choiceEnded(index, result);
}

size_t Completion::Choice::size() const {
  size_t bytes = text.size() + reasoning.size() + 256;
  for (const auto &[name, list] : bufferedLogprobs)
    bytes += name.size() + list.size();
  return bytes;
}

/// Appends the fields of `object` and a comma, without the closing brace.
static void openObject(std::string &out, const Json &object) {
  out += toJsonText(object);
  out.back() = ',';
}

void Completion::Choice::moveTo(std::string &out) {
  Json choice = {{"index", index}};
  bool onlyCalls = text.empty() && !calls.empty();
  Json content = std::move(text);
  if (isChat()) {
    Json message = {{"role", "assistant"},
                    {"content", onlyCalls ? Json() : std::move(content)},
                    {"refusal", Json()}};
    if (!reasoning.empty())
      message["reasoning_content"] = std::move(reasoning);
    if (!calls.empty())
      message["tool_calls"] = std::move(calls);
    choice["message"] = std::move(message);
  } else {
    choice["text"] = std::move(content);
  }
  openObject(out, choice);
  out += "\"logprobs\":";
  if (bufferedLogprobs.empty())
    out += "null";
  char separator = '{';
  for (auto &[name, list] : bufferedLogprobs) {
    out += separator;
    out += "\"" + name + "\":[";
    out += list;
    out += ']';
    separator = ',';
    std::string().swap(list);
  }
  out += bufferedLogprobs.empty() ? "" : "}";
  out += ",\"finish_reason\":\"" + std::string(reason) + "\"}";
}

uint64_t Completion::answerBytes(const CompletionRequest &request, const Manifest &manifest) {
  // A token is 4 to 5 characters on average. A log probability has up to 20; in chats, there are
  // also names of fields and the bytes of the token.
  constexpr uint64_t bytesOfToken = 16, bytesOfLogprob = 48, bytesOfChatLogprob = 128;
  if (request.stream)
    return 0;
  uint64_t each =
      request.endpoint == Endpoint::ChatCompletions ? bytesOfChatLogprob : bytesOfLogprob;
  uint64_t token = bytesOfToken;
  if (request.topLogprobs)
    token += each * static_cast<uint64_t>(*request.topLogprobs + 1);
  uint64_t tokens = 0;
  for (const Tokens &prompt : request.prompts)
    tokens += static_cast<uint64_t>(
        std::max<int64_t>(0, std::min(request.settings.maxTokens.value_or(manifest.maxSeq),
                                      manifest.maxSeq + 1 - static_cast<int64_t>(prompt.size()))));
  return tokens * static_cast<uint64_t>(request.numChoices) * token;
}

uint64_t Completion::requestBytes(const CompletionRequest &request) {
  uint64_t bytes = request.settings.logitBias.size() * sizeof(LogitBias);
  for (const std::string &stop : request.settings.stops)
    bytes += stop.size();
  for (const Tokens &prompt : request.prompts)
    bytes += prompt.size() * sizeof(int32_t);
  return bytes;
}

/// What the choices of a request share: all but the prompt.
static std::shared_ptr<const Request> commonRequest(const CompletionRequest &request) {
  auto common = std::make_shared<Request>(Request{.prompt = {},
                                                  .settings = request.settings,
                                                  .maxReused = std::numeric_limits<int64_t>::max(),
                                                  .limitGaps = request.stream});
  if (!common->settings.seed)
    common->settings.seed = drawSeed();
  return common;
}

Completion::Completion(const CompletionRequest &request, const ServedModel &model,
                       EngineThread &engine, std::shared_ptr<RequestMetrics> metrics,
                       std::shared_ptr<Exchange> exchange, Memory memory)
    : endpoint(request.endpoint), stream(request.stream), includeUsage(request.includeUsage),
      isSeeded(request.settings.seed.has_value()), common(commonRequest(request)),
      numChoices(request.numChoices), topLogprobs(request.topLogprobs), tools(request.tools),
      parallelCalls(request.parallelCalls), startsInReasoning(request.startsInReasoning),
      memory(std::move(memory)), model(model), engine(engine), metrics(std::move(metrics)),
      exchange(std::move(exchange)), id(newId(request.endpoint)), created(unixSeconds()) {}

Completion::~Completion() = default;

void Completion::start(std::vector<Tokens> prompts, std::chrono::milliseconds timeout,
                       std::chrono::milliseconds pingInterval, bool logPrompts) {
  exchange->onDisconnect([self = shared_from_this()] {
    self->end(Outcome::Canceled);
    self->cancel();
  });
  if (timeout.count() > 0)
    exchange->onTimeout(
        timeout, [self = shared_from_this()] { self->abort(timedOut(), Outcome::TimedOut); });
  std::vector<std::shared_ptr<const Tokens>> shared;
  for (Tokens &prompt : prompts)
    shared.push_back(std::make_shared<const Tokens>(std::move(prompt)));
  if (!submit(shared))
    return;
  if (stream && pingInterval.count() > 0)
    exchange->every(pingInterval, [self = shared_from_this()] { self->ping(); });
  if (logPrompts)
    report(shared);
}

/// Writes the prompts as the model reads them, with special tokens.
void Completion::report(const std::vector<std::shared_ptr<const Tokens>> &prompts) const {
  Json texts = Json::array();
  for (const std::shared_ptr<const Tokens> &prompt : prompts) {
    if (!model.text) {
      texts.push_back(*prompt);
      continue;
    }
    std::string text;
    for (int32_t token : *prompt)
      text += model.text->isSpecial(token) ? model.text->textOf(token) : model.text->bytesOf(token);
    texts.push_back(std::move(text));
  }
  reportJson(toJsonText({{"id", id},
                         {"created", created},
                         {"endpoint", pathOf(endpoint)},
                         {"prompt_tokens", promptTokens},
                         {"prompts", std::move(texts)}}));
}

/// Returns whether the request was accepted; otherwise the client gets an error.
bool Completion::submit(const std::vector<std::shared_ptr<const Tokens>> &prompts) {
  std::vector<EngineThread::Submission> wanted;
  for (const std::shared_ptr<const Tokens> &prompt : prompts) {
    promptTokens += static_cast<int64_t>(prompt->size());
    bool continuesText = model.text && model.text->hasText(*prompt);
    for (int64_t n = 0; n < numChoices; ++n) {
      choices.push_back(
          std::make_unique<Choice>(*this, static_cast<int64_t>(choices.size()), continuesText));
      // With a seed, the completions of a prompt do not depend on other prompts of the request.
      int64_t ofSeed = isSeeded ? n : static_cast<int64_t>(choices.size()) - 1;
      // Shares ownership of the completion, which owns the choices.
      wanted.emplace_back(
          SharedRequest{common, prompt, static_cast<uint64_t>(ofSeed)},
          std::shared_ptr<RequestListener>(shared_from_this(), choices.back().get()));
    }
  }
  unended = wanted.size();
  auto submitted = engine.submit(std::move(wanted));
  if (!submitted)
    fail({.status = 429,
          .message = "too many requests are waiting; try again later",
          .retryAfter = engine.secondsToWait()},
         Outcome::Overloaded);
  else
    ids = *std::move(submitted);
  return !ids.empty();
}

void Completion::cancel() {
  if (isCanceled.exchange(true))
    return;
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

/// The complete answer, whose parts are freed meanwhile.
std::string Completion::takeBody() {
  std::string whole, last = ",\"usage\":" + toJsonText(usage()) + "}";
  openObject(whole, envelope(/*chunk=*/false));
  size_t size = whole.size() + last.size();
  for (const auto &choice : choices)
    size += choice->size();
  whole.reserve(size + size / 16);
  whole += "\"choices\":";
  char separator = '[';
  for (const auto &choice : choices) {
    whole += separator;
    choice->moveTo(whole);
    separator = ',';
  }
  whole += ']';
  whole += last;
  return whole;
}

void Completion::reply() {
  if (hasEnded())
    return;
  try {
    std::string body = takeBody();
    if (end(Outcome::Ok))
      exchange->reply({.body = std::move(body), .reservation = std::move(memory.answer)});
  } catch (const std::exception &problem) {
    fail(internalError(problem), Outcome::Failed);
  }
}

/// Server-sent events.
void Completion::sendEvent(const Json &event) {
  std::string text = "data: " + toJsonText(event) + "\n\n";
  // The lock is held, so that no comment is sent before the header.
  std::lock_guard lock(mutex);
  if (ended)
    return;
  if (!std::exchange(answered, true))
    exchange->beginStream("text/event-stream");
  isQuiet = false;
  exchange->send(std::move(text));
}

/// Sends a comment of server-sent events if no event was sent since the last call. Before
/// the first event or comment, an error is a reply with a status.
void Completion::ping() {
  std::lock_guard lock(mutex);
  if (ended || !std::exchange(isQuiet, true))
    return;
  if (!std::exchange(answered, true))
    exchange->beginStream("text/event-stream");
  exchange->send(": waiting\n\n");
}

void Completion::choiceEnded(int64_t choice, const RequestResult &result) {
  bool all = false;
  {
    std::lock_guard lock(mutex);
    completionTokens += static_cast<int64_t>(result.tokens.size());
    // Further completions may find the prompt in the cache because of the first one.
    if (choice % numChoices == 0)
      cachedTokens += result.reusedTokens;
    if (result.finish == Finish::Failed && !failure)
      failure = result.error;
    all = --unended == 0;
  }
  // Nothing has been computed for one that was canceled while it waited.
  if (!result.tokens.empty())
    metrics->all.countPrompt(result.promptTokens, result.reusedTokens);
  if (!all)
    return;
  try {
    finish();
  } catch (const std::exception &problem) {
    fail(internalError(problem), Outcome::Failed);
  }
}

void Completion::choiceFailed(const std::exception &problem) {
  std::lock_guard lock(mutex);
  failure = Error{internalError(problem).message};
}

void Completion::finish() {
  if (hasEnded())
    return;
  if (failure)
    return fail({.status = 500, .message = failure->message}, Outcome::Failed);
  if (!stream) {
    // An answer may be large: it is composed on the server's thread, not on the engine's.
    exchange->post([self = shared_from_this()] { self->reply(); });
    return;
  }
  if (includeUsage) {
    Json last = envelope(/*chunk=*/true);
    last["choices"] = Json::array();
    last["usage"] = usage();
    sendEvent(last);
  }
  if (!end(Outcome::Ok))
    return;
  exchange->send("data: [DONE]\n\n");
  exchange->endStream();
}

bool Completion::hasEnded() const {
  std::lock_guard lock(mutex);
  return ended;
}

/// Returns whether it had not ended: only the caller may send something from now on.
bool Completion::end(Outcome outcome) {
  std::lock_guard lock(mutex);
  if (std::exchange(ended, true))
    return false;
  metrics->end(outcome);
  return true;
}

void Completion::fail(const ApiError &error, Outcome outcome) {
  HttpReply reply = errorReply(error);
  if (!end(outcome))
    return;
  // Nobody else changes it any more.
  if (!answered)
    return exchange->reply(std::move(reply));
  exchange->send("data: " + reply.body + "\n\n");
  exchange->endStream();
}

} // namespace mica::rt::serve
