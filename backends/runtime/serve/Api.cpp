#include "backends/runtime/serve/Api.h"
#include "backends/runtime/serve/Completion.h"
#include "backends/runtime/serve/OpenApi.h"
#include "backends/runtime/serve/ParseRequest.h"
#include "backends/runtime/serve/WebPage.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cctype>

namespace mica::rt::serve {

static void replyError(const std::shared_ptr<Exchange> &exchange, const ApiError &error) {
  exchange->reply(errorReply(error));
}

Api::Api(ServedModel model, EngineThread &engine, TaskThreads &readers, uint64_t cacheBytes,
         Options options)
    : model(std::move(model)), engine(engine), readers(readers), cacheBytes(cacheBytes),
      options(std::move(options)), answers(this->options.maxAnswerBytes), started(unixSeconds()) {}

static std::string lowerCase(std::string_view text) {
  std::string lower(text);
  for (char &c : lower)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

/// The schema of an object with one field; null is equivalent to an absent field.
static Json objectWith(const char *name, Json schema) {
  return {{"type", "object"},
          {"properties", {{name, std::move(schema)}}},
          {"required", {name}},
          {"additionalProperties", {{"type", "null"}}}};
}

/// In OpenAPI notation; requests have a name instead of the part in braces.
static constexpr std::string_view kModelPath = "/v1/models/{model}", kModelPrefix = "/v1/models/",
                                  kHealthPath = "/health";

/// An optional field that is a boolean.
static Json optionalBoolean() { return {{"type", {"boolean", "null"}}}; }

const std::map<std::string_view, Api::Route> &Api::routes() {
  using M = const ServedModel &;
  static constexpr const char *html = "text/html; charset=utf-8",
                              *script = "text/javascript; charset=utf-8",
                              *style = "text/css; charset=utf-8";
  // All routes may return the statuses of openApi, and 403 if hosts are checked; those with a key
  // 401, those with a body 415 and 504.
  const std::vector<unsigned> ofCompletions = {404, 429};
  static const std::map<std::string_view, Route> table = {
      {"/",
       {.method = "GET",
        .handler = &Api::page,
        .summary = "Web page for chatting with the model",
        .contentType = html,
        .open = true}},
      {"/app.js",
       {.method = "GET",
        .handler = &Api::page,
        .summary = "Script of the web page",
        .contentType = script,
        .open = true}},
      {"/style.css",
       {.method = "GET",
        .handler = &Api::page,
        .summary = "Style sheet of the web page",
        .contentType = style,
        .open = true}},
      {kHealthPath,
       {.method = "GET",
        .handler = &Api::health,
        .summary = "Whether the server accepts requests",
        .schema = "Health",
        .open = true}},
      {"/metrics",
       {.method = "GET",
        .handler = &Api::metricsText,
        .summary = "Counters and latencies for Prometheus",
        .contentType = "text/plain; version=0.0.4"}},
      {"/openapi.json", {.method = "GET", .handler = &Api::openApi, .summary = "This description"}},
      {"/v1/models",
       {.method = "GET",
        .handler = &Api::models,
        .summary = "List the model",
        .schema = "ModelList"}},
      {kModelPath,
       {.method = "GET",
        .handler = &Api::oneModel,
        .summary = "Describe the model",
        .schema = "Model",
        .statuses = {404}}},
      {pathOf(Endpoint::ChatCompletions),
       {.method = "POST",
        .handler = &Api::chatCompletions,
        .summary = "Create a chat completion",
        .body = [](M model) { return requestSchema(Endpoint::ChatCompletions, model); },
        .examples = [](M model) { return exampleRequests(Endpoint::ChatCompletions, model); },
        .schema = "ChatCompletion",
        .eventSchema = "ChatCompletionChunk",
        .statuses = ofCompletions}},
      {pathOf(Endpoint::Completions),
       {.method = "POST",
        .handler = &Api::completions,
        .summary = "Create a completion",
        .body = [](M model) { return requestSchema(Endpoint::Completions, model); },
        .examples = [](M model) { return exampleRequests(Endpoint::Completions, model); },
        .schema = "Completion",
        .eventSchema = "CompletionChunk",
        .statuses = ofCompletions}},
      {"/tokenize",
       {.method = "POST",
        .handler = &Api::tokenize,
        .summary = "Tokenize text",
        .body =
            [](M) {
              Json schema = objectWith("content", {{"type", "string"}});
              schema["properties"]["add_special"] = optionalBoolean();
              schema["properties"]["parse_special"] = optionalBoolean();
              return schema;
            },
        .schema = "Tokens"}},
      {"/detokenize",
       {.method = "POST",
        .handler = &Api::detokenize,
        .summary = "Convert token ids to text",
        .body =
            [](M model) {
              Json id = {
                  {"type", "integer"}, {"minimum", 0}, {"maximum", model.manifest.vocab - 1}};
              return objectWith("tokens", {{"type", "array"}, {"items", std::move(id)}});
            },
        .schema = "Text"}},
  };
  return table;
}

/// Generated from the tables of routes and of request fields.
void Api::openApi(HttpRequest &, std::shared_ptr<Exchange> exchange) {
  Json paths = Json::object();
  for (const auto &[path, route] : routes()) {
    auto response = [](const char *description, Json schema) -> Json {
      return {{"description", description},
              {"content", {{"application/json", {{"schema", std::move(schema)}}}}}};
    };
    Json content = {{route.contentType, Json::object()}};
    if (route.schema)
      content[route.contentType]["schema"] = replySchema(route.schema);
    if (route.eventSchema)
      // Of each event, as tools for OpenAPI read it. Not all data is JSON, so it has no schema.
      content["text/event-stream"]["schema"] = {
          {"type", "object"},
          {"description", "The data of an event is a " + std::string(route.eventSchema) +
                              " or an Error as JSON, and [DONE] in the last one; comments may "
                              "come before events"},
          {"properties", {{"data", {{"type", "string"}}}}},
          {"required", {"data"}}};
    Json operation = {
        {"summary", route.summary},
        {"responses",
         {{"200", {{"description", route.summary}, {"content", std::move(content)}}}}}};
    // A malformed request, another method, a late body, a large body, an unknown expectation, a
    // large header, a failure, an unknown transfer coding, loading.
    std::vector<unsigned> statuses = {400, 405, 408, 413, 417, 431, 500, 501, 503};
    statuses.insert(statuses.end(), route.statuses.begin(), route.statuses.end());
    if (route.body) {
      Json body = {{"schema", route.body(model)}};
      if (route.examples)
        body["examples"] = route.examples(model);
      operation["requestBody"] = {{"required", true},
                                  {"content", {{"application/json", std::move(body)}}}};
      statuses.insert(statuses.end(), {415, 504});
    }
    if (path == kModelPath)
      operation["parameters"] = Json::array({{{"name", "model"},
                                              {"in", "path"},
                                              {"required", true},
                                              {"schema", {{"const", model.name}}}}});
    if (!route.open && !options.keys.empty()) {
      operation["security"] = Json::array({{{"key", Json::array()}}});
      statuses.push_back(401);
    }
    if (options.checkHosts)
      statuses.push_back(403);
    std::sort(statuses.begin(), statuses.end());
    for (unsigned status : statuses)
      operation["responses"][std::to_string(status)] = response("An error", replySchema("Error"));
    if (path == kHealthPath)
      operation["responses"]["503"] = response("Not ready", replySchema("Health"));
    paths[std::string(path)][lowerCase(route.method)] = std::move(operation);
  }
  Json components = {{"schemas", replySchemas()}};
  if (!options.keys.empty())
    components["securitySchemes"] = {{"key", {{"type", "http"}, {"scheme", "bearer"}}}};
  exchange->reply({.body = toJsonText({{"openapi", "3.1.0"},
                                       {"info", {{"title", model.name}, {"version", "1"}}},
                                       {"paths", std::move(paths)},
                                       {"components", std::move(components)}})});
}

/// The time does not depend on how much of the key matches.
static bool equalInConstantTime(std::string_view given, std::string_view key) {
  unsigned different = given.size() != key.size();
  for (size_t i = 0; i < given.size(); ++i)
    different |= static_cast<unsigned char>(given[i]) ^
                 static_cast<unsigned char>(key.empty() ? 1 : key[i % key.size()]);
  return different == 0;
}

bool Api::isAllowed(const std::string &authorization) const {
  if (options.keys.empty())
    return true;
  static constexpr std::string_view scheme = "bearer ";
  std::string_view given = authorization;
  if (lowerCase(given.substr(0, scheme.size())) != scheme)
    return false;
  given.remove_prefix(std::min(given.find_first_not_of(' ', scheme.size()), given.size()));
  bool allowed = false;
  for (const std::string &key : options.keys)
    allowed |= equalInConstantTime(given, key);
  return allowed;
}

const Api::Route *Api::findRoute(const std::string &path) {
  bool namesModel = path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size();
  auto found = routes().find(namesModel ? kModelPath : std::string_view(path));
  return found == routes().end() ? nullptr : &found->second;
}

std::optional<HttpReply> Api::rejection(const HttpRequest &header) {
  std::optional<HttpReply> reply = rejectedBy(header);
  if (reply)
    metrics.countRejection(reply->status);
  return reply;
}

/// The host of "host:port", in lower case.
static std::string hostOf(std::string_view authority) {
  size_t colon = authority.rfind(':');
  if (colon != authority.npos && authority.find(']', colon) == authority.npos)
    authority = authority.substr(0, colon);
  return lowerCase(authority);
}

/// Protects against cross-site requests and DNS rebinding: any web page can send requests to a
/// loopback address, also through a host name that it lets resolve to one. Browsers send that name
/// as `Host` and the origin of the page as `Origin`.
std::optional<HttpReply> Api::hostRejection(const HttpRequest &header) const {
  auto isAllowedHost = [&](const std::string &host) {
    return std::any_of(options.allowedHosts.begin(), options.allowedHosts.end(),
                       [&](const std::string &each) { return lowerCase(each) == host; });
  };
  if (!options.checkHosts)
    return std::nullopt;
  std::string host = hostOf(header.host);
  // DNS rebinding needs a name.
  if (!host.empty() && !isLoopback(host) && !isAddress(host) && !isAllowedHost(host))
    return errorReply({.status = 403,
                       .message = "requests to the host " + host +
                                  " are not allowed; start the server with --allowed-host " +
                                  host});
  if (header.origin.empty())
    return std::nullopt;
  // Another port of a loopback address is another server, that of an allowed host is a proxy's.
  size_t scheme = header.origin.find("://");
  std::string origin = scheme == header.origin.npos ? "" : header.origin.substr(scheme + 3);
  if (!origin.empty() &&
      (lowerCase(origin) == lowerCase(header.host) || isAllowedHost(hostOf(origin))))
    return std::nullopt;
  return errorReply(
      {.status = 403,
       .message = "cross-origin requests from " + header.origin + " are not allowed"});
}

bool Api::isAddress(const std::string &host) {
  in6_addr address;
  if (host.starts_with('[') && host.ends_with(']'))
    return inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), &address) == 1;
  return inet_pton(AF_INET, host.c_str(), &address) == 1;
}

bool Api::isLoopback(const std::string &host) {
  // A browser takes a name of digits and dots for an address.
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

std::optional<HttpReply> Api::rejectedBy(const HttpRequest &header) const {
  if (std::optional<HttpReply> reply = hostRejection(header))
    return reply;
  const Route *route = findRoute(header.path);
  if (!route)
    return errorReply({.status = 404, .message = "unknown path '" + header.path + "'"});
  if (header.method != route->method)
    return errorReply(
        {.status = 405,
         .message = "the method is not allowed for " + header.path + "; use " + route->method},
        {{"Allow", route->method}});
  if (!route->open && !isAllowed(header.authorization))
    return errorReply(
        {.status = 401,
         .message = "an API key is required: send the header Authorization: Bearer KEY",
         .code = "invalid_api_key"},
        {{"WWW-Authenticate", "Bearer"}});
  if (route->body && !header.contentEncoding.empty() &&
      lowerCase(header.contentEncoding) != "identity")
    return errorReply({.status = 415,
                       .message = "a body with the Content-Encoding " + header.contentEncoding +
                                  " is not supported; send it uncompressed"});
  if (route->body && draining) {
    ApiError error = shuttingDown();
    error.retryAfter = 5;
    return errorReply(error);
  }
  return std::nullopt;
}

void Api::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  if (std::optional<HttpReply> reply = rejection(request))
    return exchange->reply(*std::move(reply));
  (this->*findRoute(request.path)->handler)(request, std::move(exchange));
}

std::optional<HttpReply> Api::rejectionWhileLoading(const HttpRequest &header) {
  if (header.path == kHealthPath)
    return HttpReply{.status = 503, .body = toJsonText({{"status", "loading"}})};
  return errorReply(
      {.status = 503, .message = "the model is being loaded; try again later", .retryAfter = 1});
}

/// The error for a request that takes `bytes`, for which there is no room.
static ApiError outOfMemory(const Reservation &reservation, uint64_t bytes) {
  return reservation.canHold(bytes) ? tooManyLargeRequests() : tooLargeRequest(bytes);
}

/// An upper estimate of the memory that a body takes while it is read, without the body itself.
static uint64_t maxReadingBytes(const std::string &body) {
  // The prompt formatted by a template and its parts, or what a text becomes: ids and their digits.
  constexpr uint64_t ofText = 16;
  return maxParsedBytes(body) + ofText * body.size();
}

static uint64_t sizeOf(const std::string &reply) { return reply.size(); }
static uint64_t sizeOf(const CompletionRequest &request) {
  return Completion::requestBytes(request);
}

/// A body of this size takes about a millisecond to parse and tokenize.
static constexpr size_t maxQuickText = 16 << 10;

namespace {
/// A request whose body is parsed by TaskThreads, until it has been parsed.
class UnreadBody final : public InProgress {
public:
  UnreadBody(std::shared_ptr<Exchange> exchange, std::shared_ptr<RequestMetrics> metrics)
      : exchange(std::move(exchange)), metrics(std::move(metrics)) {}

  void abort(const ApiError &error, Outcome outcome) override { fail(error, outcome); }
  void cancel() {
    if (end())
      count(Outcome::Canceled);
  }
  /// May be called from any thread.
  void fail(const ApiError &error, Outcome outcome) {
    if (!end())
      return;
    count(outcome);
    replyError(exchange, error);
  }
  /// Returns whether it had not ended. May be called from any thread.
  bool end() { return source.request_stop(); }
  /// Requested when it has ended.
  std::stop_token token() const { return source.get_token(); }

private:
  void count(Outcome outcome) {
    if (metrics)
      metrics->end(outcome);
  }

  std::stop_source source;
  const std::shared_ptr<Exchange> exchange;
  const std::shared_ptr<RequestMetrics> metrics;
};
} // namespace

void Api::add(const std::shared_ptr<InProgress> &request) {
  std::erase_if(unfinished, [](const auto &each) { return each.expired(); });
  unfinished.push_back(request);
}

template <std::invocable<const std::string &, const std::stop_token &> Read, typename Act>
void Api::readBody(HttpRequest &request, const std::shared_ptr<Exchange> &exchange,
                   std::shared_ptr<RequestMetrics> metrics, size_t largeBody, Read read, Act act) {
  using Value = std::invoke_result_t<Read, const std::string &, const std::stop_token &>;
  auto readAll = [read = std::move(read), reservation = request.reservation,
                  max = options.maxReadingBytes](std::string body, const std::stop_token &stop) {
    uint64_t needed = maxReadingBytes(body);
    Value result = needed <= max ? read(body, stop) : Value(tooLargeRequest(needed));
    std::string().swap(body);
    const auto *value = std::get_if<0>(&result);
    uint64_t bytes = value ? reservedFor(sizeOf(*value)) : 0;
    if (!reservation->resize(bytes))
      result = outOfMemory(*reservation, bytes);
    return result;
  };
  if (request.body.size() <= largeBody)
    return act(readAll(std::move(request.body), {}));
  auto unread = std::make_shared<UnreadBody>(exchange, std::move(metrics));
  add(unread);
  exchange->onDisconnect([unread] { unread->cancel(); });
  if (options.requestTimeout.count() > 0)
    exchange->onTimeout(options.requestTimeout,
                        [unread] { unread->fail(timedOut(), Outcome::TimedOut); });
  size_t size = request.body.size();
  readers.add(size, [body = std::move(request.body), exchange, unread, readAll = std::move(readAll),
                     act = std::move(act)]() mutable {
    std::stop_token stop = unread->token();
    if (stop.stop_requested())
      return;
    try {
      auto result = std::make_shared<Value>(readAll(std::move(body), stop));
      exchange->post([unread, result, act = std::move(act)] {
        if (unread->end())
          act(std::move(*result));
      });
    } catch (const std::exception &failure) {
      unread->fail(internalError(failure), Outcome::Failed);
    }
  });
}

/// The error for requests that would never be accepted, even by an idle server.
static ApiError tooManyChoices(const CompletionRequest &request, size_t max) {
  auto prompts = static_cast<int64_t>(request.prompts.size());
  return {.message = "the request has " + std::to_string(prompts * request.numChoices) +
                     " completions, but the server accepts at most " + std::to_string(max) +
                     " at once (--sequences and --queue); lower 'n' or send fewer prompts",
          .param = request.numChoices > 1 ? "n" : "prompt"};
}

static ApiError tooLargeAnswer(uint64_t bytes, uint64_t max) {
  return {.message = "the answer may have " + std::to_string(bytes) +
                     " bytes, but the server buffers at most " + std::to_string(max) +
                     " of answers that are not streamed; lower 'max_tokens', 'n' or the number of "
                     "log probabilities, or use \"stream\": true",
          .param = "max_tokens"};
}

void Api::complete(Endpoint endpoint, HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  auto read = [this, endpoint](const std::string &body, const std::stop_token &stop) {
    return parseCompletionRequest(endpoint, body, model, stop);
  };
  auto ofRequest = std::make_shared<RequestMetrics>(metrics);
  auto act = [this, exchange, ofRequest,
              reservation = request.reservation](std::variant<CompletionRequest, ApiError> parsed) {
    auto reject = [&](const ApiError &error, Outcome outcome) {
      ofRequest->end(outcome);
      replyError(exchange, error);
    };
    if (draining) {
      ApiError error = shuttingDown();
      error.retryAfter = 5;
      return reject(error, Outcome::Shutdown);
    }
    if (Status readable = engine.model().checkReadable(); !readable)
      return reject({.status = 503, .message = readable.error().message}, Outcome::Failed);
    if (const auto *error = std::get_if<ApiError>(&parsed))
      return reject(*error, error->status == 503 ? Outcome::Overloaded : Outcome::Invalid);
    auto &wanted = std::get<CompletionRequest>(parsed);
    if (wanted.prompts.size() * static_cast<size_t>(wanted.numChoices) > engine.maxUnfinished())
      return reject(tooManyChoices(wanted, engine.maxUnfinished()), Outcome::Invalid);
    auto answer = std::make_shared<Reservation>(answers);
    if (uint64_t bytes = Completion::answerBytes(wanted, model.manifest); !answer->resize(bytes)) {
      if (!answer->canHold(bytes))
        return reject(tooLargeAnswer(bytes, answers.max()), Outcome::Invalid);
      return reject({.status = 429,
                     .message = "too many large answers are in progress; try again later, or use "
                                "\"stream\": true",
                     .retryAfter = engine.secondsToWait()},
                    Outcome::Overloaded);
    }
    auto completion = std::make_shared<Completion>(
        wanted, model, engine, ofRequest, exchange,
        Completion::Memory{.request = reservation, .answer = std::move(answer)});
    add(completion);
    std::chrono::milliseconds timeout = options.requestTimeout;
    if (timeout.count() > 0) {
      auto used = std::chrono::duration_cast<std::chrono::milliseconds>(
          RequestMetrics::Clock::now() - ofRequest->arrived);
      timeout = std::max(timeout - used, std::chrono::milliseconds(1));
    }
    completion->start(std::move(wanted.prompts), timeout, options.pingInterval, options.logPrompts);
  };
  // An exception of `act` is the reply, see Connection::attempt, and ends the request as failed.
  // The time of a chat template does not follow from the size of the body: some look back through
  // all messages for each one.
  size_t largeBody = endpoint == Endpoint::ChatCompletions ? 0 : maxQuickText;
  readBody(request, exchange, ofRequest, largeBody, std::move(read), std::move(act));
}

void Api::abort(const ApiError &error, Outcome outcome) {
  for (const std::weak_ptr<InProgress> &each : unfinished)
    if (std::shared_ptr<InProgress> request = each.lock())
      request->abort(error, outcome);
}

/// The web page, which may only run and load resources of the server itself.
void Api::page(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  static constexpr const char *policy =
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri "
      "'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";
  bool script = request.path == "/app.js", style = request.path == "/style.css";
  exchange->reply({.contentType = routes().at(request.path).contentType,
                   .body = std::string(script  ? kPageScript
                                       : style ? kPageStyle
                                               : kPageMarkup),
                   .headers = {{"Content-Security-Policy", policy},
                               {"Cross-Origin-Opener-Policy", "same-origin"},
                               {"Cross-Origin-Resource-Policy", "same-origin"},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cache-Control", "no-cache"}}});
}

Json Api::modelEntry() const {
  return {{"id", model.name},
          {"object", "model"},
          {"created", started},
          {"owned_by", "mica"},
          {"meta",
           {{"weights", weightsText(model.manifest)},
            {"context_length", model.manifest.maxSeq},
            {"vocabulary_size", model.manifest.vocab},
            {"chat", model.chatTemplate != nullptr}}}};
}

void Api::models(HttpRequest &, std::shared_ptr<Exchange> exchange) {
  exchange->reply(
      {.body = toJsonText({{"object", "list"}, {"data", Json::array({modelEntry()})}})});
}

void Api::oneModel(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  std::string name = request.path.substr(kModelPrefix.size());
  if (name != model.name)
    return replyError(exchange, unknownModel(name, model));
  exchange->reply({.body = toJsonText(modelEntry())});
}

void Api::health(HttpRequest &, std::shared_ptr<Exchange> exchange) {
  const char *status = !engine.model().checkReadable() ? "failed" : draining ? "draining" : "ready";
  exchange->reply({.status = status == std::string_view("ready") ? 200u : 503u,
                   .body = toJsonText({{"status", status}})});
}

void Api::metricsText(HttpRequest &, std::shared_ptr<Exchange> exchange) {
  EngineThread::Load load = engine.load();
  exchange->reply(
      {.contentType = routes().at("/metrics").contentType,
       .body = metrics.text({.running = load.running,
                             .waiting = load.waiting,
                             .cacheBytes = cacheBytes,
                             .usedCacheBytes = static_cast<uint64_t>(
                                 static_cast<double>(cacheBytes) * engine.cacheUse()),
                             .checkpointBytes = engine.checkpointBytes(),
                             .recomputedAnswerTokens = engine.counters().recomputedAnswerTokens,
                             .copiedTokens = engine.counters().copiedTokens,
                             .draftedTokens = engine.counters().drafted,
                             .acceptedTokens = engine.counters().accepted})});
}

/// Parses a body that is an object with the field `name`, which is returned, and optionally some of
/// `options`, booleans.
static std::variant<Json, ApiError> onlyField(const std::string &body, const char *name,
                                              const std::stop_token &stop,
                                              const std::map<std::string, bool *> &options = {}) {
  std::variant<Json, ApiError> parsed = parseObject(body, stop);
  auto *json = std::get_if<Json>(&parsed);
  if (!json)
    return parsed;
  for (const auto &[key, value] : json->items()) {
    auto option = options.find(key);
    if (option != options.end() && value.is_boolean())
      *option->second = value.get<bool>();
    else if (option != options.end())
      return ApiError{.message = "'" + key + "' is not a boolean", .param = key};
    else if (key != name)
      return ApiError{.message = "the field '" + key + "' is not supported; leave it out",
                      .param = key};
  }
  if (!json->contains(name))
    return ApiError{.message = "'" + std::string(name) + "' is missing", .param = name};
  return std::move((*json)[name]);
}

void Api::replyRead(HttpRequest &request, const std::shared_ptr<Exchange> &exchange,
                    BodyReader read) {
  readBody(
      request, exchange, /*metrics=*/nullptr, maxQuickText,
      [this, read](const std::string &body, const std::stop_token &stop) {
        return (this->*read)(body, stop);
      },
      [exchange](auto result) {
        if (const auto *error = std::get_if<ApiError>(&result))
          return replyError(exchange, *error);
        exchange->reply({.body = std::get<std::string>(std::move(result))});
      });
}

void Api::tokenize(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  replyRead(request, exchange, &Api::tokensOf);
}

std::variant<std::string, ApiError> Api::tokensOf(const std::string &body,
                                                  const std::stop_token &stop) const {
  // The defaults of llama-server.
  bool addSpecial = false, parseSpecial = true;
  auto content = onlyField(body, "content", stop,
                           {{"add_special", &addSpecial}, {"parse_special", &parseSpecial}});
  if (auto *error = std::get_if<ApiError>(&content))
    return std::move(*error);
  const auto *text = std::get<Json>(content).get_ptr<const std::string *>();
  if (!text)
    return ApiError{.message = "'content' is not a string", .param = "content"};
  if (!model.text)
    return ApiError{.message = noTokenizer + std::string("to /v1/completions")};
  if (stop.stop_requested())
    return shuttingDown();
  Result<Tokens> tokens = model.text->encode(*text, addSpecial, parseSpecial);
  if (!tokens)
    return ApiError{.message = tokens.error().message, .param = "content"};
  // As Json, the tokens would take several times as much memory.
  std::string reply = "{\"tokens\":[";
  for (int32_t token : *tokens)
    reply += (reply.back() == '[' ? "" : ",") + std::to_string(token);
  return reply + "]}";
}

/// Of the reply to /detokenize: a token has a few bytes in a request, but may have hundreds in a
/// text.
static constexpr uint64_t maxTextBytes = uint64_t(64) << 20;
/// What a byte of a text takes in memory, twice while it grows, and then as JSON: up to 6 bytes.
static constexpr uint64_t bytesOfTextByte = 16;

void Api::detokenize(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  replyRead(request, exchange, &Api::textOf);
}

std::variant<std::string, ApiError> Api::textOf(const std::string &body,
                                                const std::stop_token &stop) const {
  auto tokens = onlyField(body, "tokens", stop);
  if (auto *error = std::get_if<ApiError>(&tokens))
    return std::move(*error);
  if (!model.text)
    return ApiError{.message = noTokenizer + std::string("to /v1/completions")};
  const Json &list = std::get<Json>(tokens);
  auto isToken = [&](const Json &each) {
    return each.is_number_unsigned() &&
           each.get<uint64_t>() < static_cast<uint64_t>(model.manifest.vocab);
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), isToken))
    return ApiError{.message = "'tokens' is not an array of token ids, which are below " +
                               std::to_string(model.manifest.vocab),
                    .param = "tokens"};
  Tokenizer::Decoder decoder = model.text->decoderWithSpecialTokens();
  std::string text;
  uint64_t max = std::min(maxTextBytes, options.maxReadingBytes / bytesOfTextByte);
  for (const Json &token : list) {
    text += decoder.push(token.get<int32_t>());
    if (stop.stop_requested())
      return shuttingDown();
    if (text.size() > max)
      return ApiError{.message = "the text of 'tokens' has more than " + std::to_string(max) +
                                 " bytes; send fewer",
                      .param = "tokens"};
  }
  text += decoder.finish();
  return toJsonText({{"content", std::move(text)}});
}

} // namespace mica::rt::serve
