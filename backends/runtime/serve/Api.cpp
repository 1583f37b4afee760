#include "backends/runtime/serve/Api.h"
#include "backends/runtime/serve/Completion.h"
#include "backends/runtime/serve/WebPage.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/Seconds.h"

#include <algorithm>

namespace mica::rt::serve {

static void replyError(const std::shared_ptr<Exchange> &exchange, const ApiError &error,
                       std::vector<std::pair<std::string, std::string>> headers = {}) {
  exchange->reply(
      {.status = error.status, .body = toJsonText(error.toJson()), .headers = std::move(headers)});
}

Api::Api(ServedModel model, EngineThread &engine, TaskThread &reader, uint64_t cacheBytes,
         Options options)
    : model(std::move(model)), engine(engine), reader(reader), cacheBytes(cacheBytes),
      options(std::move(options)), started(unixSeconds()) {}

/// A schema of an object that has one field; null is the same as no field.
static Json objectWith(const char *name, Json schema) {
  return {{"type", "object"},
          {"properties", {{name, std::move(schema)}}},
          {"required", {name}},
          {"additionalProperties", {{"type", "null"}}}};
}

/// As OpenAPI writes it; requests have a name instead of the part in braces.
static constexpr std::string_view kModelPath = "/v1/models/{model}", kModelPrefix = "/v1/models/",
                                  kHealthPath = "/health";

const std::map<std::string_view, Api::Route> &Api::routes() {
  using M = const ServedModel &;
  static constexpr const char *html = "text/html; charset=utf-8",
                              *script = "text/javascript; charset=utf-8",
                              *style = "text/css; charset=utf-8";
  // 400, 401 and 413 are of all routes with a body or a key, 500 of those with a body.
  const std::vector<unsigned> ofCompletions = {404, 429, 503, 504};
  static const std::map<std::string_view, Route> table = {
      {"/", {"GET", &Api::page, "The web page", nullptr, html, {}, /*open=*/true}},
      {"/app.js", {"GET", &Api::page, "Its script", nullptr, script, {}, /*open=*/true}},
      {"/style.css", {"GET", &Api::page, "Its style", nullptr, style, {}, /*open=*/true}},
      {kHealthPath,
       {"GET",
        &Api::health,
        "Whether the server takes requests",
        nullptr,
        "application/json",
        {503},
        /*open=*/true}},
      {"/metrics",
       {"GET", &Api::metricsText, "Counts and latencies for Prometheus", nullptr,
        "text/plain; version=0.0.4"}},
      {"/openapi.json", {"GET", &Api::openApi, "This description"}},
      {"/v1/models", {"GET", &Api::models, "The model"}},
      {kModelPath,
       {"GET", &Api::oneModel, "The model of that name", nullptr, "application/json", {404}}},
      {"/v1/chat/completions",
       {"POST", &Api::chatCompletions, "An answer in a conversation",
        [](M model) { return requestSchema(Endpoint::ChatCompletions, model); }, "application/json",
        ofCompletions}},
      {"/v1/completions",
       {"POST", &Api::completions, "A continuation of a text",
        [](M model) { return requestSchema(Endpoint::Completions, model); }, "application/json",
        ofCompletions}},
      {"/tokenize",
       {"POST", &Api::tokenize, "From text to token ids",
        [](M) { return objectWith("content", {{"type", "string"}}); }}},
      {"/detokenize",
       {"POST", &Api::detokenize, "From token ids to text",
        [](M model) {
          Json id = {{"type", "integer"}, {"minimum", 0}, {"maximum", model.manifest.vocab - 1}};
          return objectWith("tokens", {{"type", "array"}, {"items", std::move(id)}});
        }}},
  };
  return table;
}

/// From the table of routes, and that of the fields of requests.
void Api::openApi(HttpRequest &, std::shared_ptr<Exchange> exchange) {
  Json paths = Json::object();
  for (const auto &[path, route] : routes()) {
    Json error = {{"description", "An error"},
                  {"content",
                   {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
    Json success = {{"description", route.summary},
                    {"content", {{route.contentType, Json::object()}}}};
    bool completes = route.handler == &Api::completions || route.handler == &Api::chatCompletions;
    if (completes)
      success["content"]["text/event-stream"] = Json::object();
    Json operation = {{"summary", route.summary}, {"responses", {{"200", std::move(success)}}}};
    std::vector<unsigned> statuses = route.statuses;
    if (route.body) {
      operation["requestBody"] = {
          {"required", true}, {"content", {{"application/json", {{"schema", route.body(model)}}}}}};
      statuses.insert(statuses.end(), {400, 413, 500});
    }
    if (path == kModelPath)
      operation["parameters"] = Json::array({{{"name", "model"},
                                              {"in", "path"},
                                              {"required", true},
                                              {"schema", {{"type", "string"}}}}});
    if (!route.open && !options.keys.empty()) {
      operation["security"] = Json::array({{{"key", Json::array()}}});
      statuses.push_back(401);
    }
    std::sort(statuses.begin(), statuses.end());
    for (unsigned status : statuses)
      operation["responses"][std::to_string(status)] = error;
    std::string method = route.method;
    for (char &c : method)
      c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    paths[std::string(path)][method] = std::move(operation);
  }
  Json string = {{"type", "string"}}, maybe = {{"type", {"string", "null"}}};
  Json schema = objectWith(
      "error",
      {{"type", "object"},
       {"properties", {{"message", string}, {"type", string}, {"param", maybe}, {"code", maybe}}},
       {"required", {"message", "type", "param", "code"}}});
  Json components = {{"schemas", {{"Error", std::move(schema)}}}};
  if (!options.keys.empty())
    components["securitySchemes"] = {{"key", {{"type", "http"}, {"scheme", "bearer"}}}};
  exchange->reply({.body = toJsonText({{"openapi", "3.1.0"},
                                       {"info", {{"title", model.name}, {"version", "1"}}},
                                       {"paths", std::move(paths)},
                                       {"components", std::move(components)}})});
}

/// Takes a time that does not depend on how much of a key is right.
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
  static constexpr std::string_view scheme = "Bearer ";
  std::string_view given = authorization;
  if (!given.starts_with(scheme))
    return false;
  given.remove_prefix(scheme.size());
  bool allowed = false;
  for (const std::string &key : options.keys)
    allowed |= equalInConstantTime(given, key);
  return allowed;
}

std::string Api::errorBody(unsigned status, const std::string &message) {
  return toJsonText(ApiError{.status = status, .message = message}.toJson());
}

void Api::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  bool namesModel =
      request.path.starts_with(kModelPrefix) && request.path.size() > kModelPrefix.size();
  auto found = routes().find(namesModel ? kModelPath : std::string_view(request.path));
  if (found == routes().end())
    return replyError(exchange, {.status = 404, .message = "there is no " + request.path});
  const Route &route = found->second;
  if (request.method != route.method)
    return replyError(
        exchange,
        {.status = 405,
         .message = request.path + " answers " + route.method + ", not " + request.method},
        {{"Allow", route.method}});
  if (!route.open && !isAllowed(request.authorization))
    return replyError(
        exchange,
        {.status = 401,
         .message = "an API key is required: send the header Authorization: Bearer KEY",
         .code = "invalid_api_key"},
        {{"WWW-Authenticate", "Bearer"}});
  (this->*route.handler)(request, std::move(exchange));
}

void Api::handleWhileLoading(const HttpRequest &request, Exchange &exchange) {
  if (request.path == kHealthPath)
    return exchange.reply({.status = 503, .body = toJsonText({{"status", "loading"}})});
  exchange.reply({.status = 503,
                  .body = errorBody(503, "the model is being loaded; try again later"),
                  .headers = {{"Retry-After", "1"}}});
}

template <std::invocable<const std::string &> Read, typename Act>
void Api::readBody(HttpRequest &request, const std::shared_ptr<Exchange> &exchange, Read read,
                   Act act) {
  constexpr size_t kLargeBody = 64 << 10; // about a millisecond to parse and to tokenize
  if (request.body.size() <= kLargeBody)
    return act(read(request.body));
  reader.add([body = std::move(request.body), exchange, read = std::move(read),
              act = std::move(act)] {
    try {
      auto result = std::make_shared<std::invoke_result_t<Read, const std::string &>>(read(body));
      exchange->post([result, act] { act(std::move(*result)); });
    } catch (const std::exception &failure) {
      exchange->reply({.status = 500, .body = errorBody(500, failure.what())});
    }
  });
}

void Api::complete(Endpoint endpoint, HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  auto read = [this, endpoint](const std::string &body) {
    return parseCompletionRequest(endpoint, body, model);
  };
  readBody(request, exchange, read, [this, exchange](auto parsed) {
    if (draining)
      return replyError(exchange, shuttingDown(), {{"Retry-After", "5"}});
    if (Status readable = engine.model().checkReadable(); !readable)
      return replyError(exchange, {.status = 503, .message = readable.error().message});
    if (const auto *error = std::get_if<ApiError>(&parsed)) {
      metrics.countRequest("refused");
      return replyError(exchange, *error);
    }
    auto &wanted = std::get<CompletionRequest>(parsed);
    auto completion = std::make_shared<Completion>(wanted, model, engine, metrics, exchange);
    std::erase_if(unfinished, [](const auto &each) { return each.expired(); });
    unfinished.push_back(completion);
    completion->start(std::move(wanted.prompts), options.requestTimeout);
  });
}

void Api::abort() {
  for (const std::weak_ptr<Completion> &each : unfinished)
    if (std::shared_ptr<Completion> completion = each.lock())
      completion->stop(Completion::StopReason::ShuttingDown);
}

/// The web page, which may run and load what the server itself gives, and nothing else.
void Api::page(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  static constexpr const char *policy =
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri "
      "'none'; form-action 'none'; frame-ancestors 'none'";
  bool script = request.path == "/app.js", style = request.path == "/style.css";
  exchange->reply({.contentType = routes().at(request.path).contentType,
                   .body = std::string(script  ? kPageScript
                                       : style ? kPageStyle
                                               : kPageMarkup),
                   .headers = {{"Content-Security-Policy", policy},
                               {"Referrer-Policy", "no-referrer"},
                               {"Cache-Control", "no-cache"}}});
}

Json Api::modelEntry() const {
  return {{"id", model.name},
          {"object", "model"},
          {"created", started},
          {"owned_by", "mica"},
          {"meta",
           {{"weights", infoOf(model.manifest.weights).name},
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
  size_t unfinished = engine.unfinished(), running = std::min(unfinished, engine.numSlots());
  exchange->reply(
      {.contentType = routes().at("/metrics").contentType,
       .body = metrics.text(
           {.running = running, .waiting = unfinished - running, .cacheBytes = cacheBytes})});
}

/// The object in a body with the field `name` alone, or what is wrong.
static std::variant<Json, ApiError> onlyField(const std::string &body, const char *name) {
  std::variant<Json, ApiError> parsed = parseObject(body);
  auto *json = std::get_if<Json>(&parsed);
  if (!json)
    return parsed;
  for (const auto &[key, value] : json->items())
    if (key != name)
      return ApiError{.message = "the field '" + key + "' is not implemented, leave it out",
                      .param = key};
  if (!json->contains(name))
    return ApiError{.message = "'" + std::string(name) + "' is missing", .param = name};
  return Json((*json)[name]);
}

void Api::replyRead(HttpRequest &request, const std::shared_ptr<Exchange> &exchange,
                    BodyReader read) {
  readBody(
      request, exchange, [this, read](const std::string &body) { return (this->*read)(body); },
      [exchange](const auto &result) {
        if (const auto *error = std::get_if<ApiError>(&result))
          return replyError(exchange, *error);
        exchange->reply({.body = toJsonText(std::get<Json>(result))});
      });
}

void Api::tokenize(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  replyRead(request, exchange, &Api::tokensOf);
}

std::variant<Json, ApiError> Api::tokensOf(const std::string &body) const {
  auto content = onlyField(body, "content");
  if (std::holds_alternative<ApiError>(content))
    return content;
  if (!std::get<Json>(content).is_string())
    return ApiError{.message = "'content' is not a string", .param = "content"};
  if (!model.text)
    return ApiError{.message = "the program has no tokenizer"};
  Result<Tokens> tokens = model.text->encode(std::get<Json>(content).get<std::string>());
  if (!tokens)
    return ApiError{.message = tokens.error().message, .param = "content"};
  return Json{{"tokens", *tokens}};
}

void Api::detokenize(HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  replyRead(request, exchange, &Api::textOf);
}

std::variant<Json, ApiError> Api::textOf(const std::string &body) const {
  auto tokens = onlyField(body, "tokens");
  if (std::holds_alternative<ApiError>(tokens))
    return tokens;
  if (!model.text)
    return ApiError{.message = "the program has no tokenizer"};
  const Json &list = std::get<Json>(tokens);
  auto isToken = [&](const Json &each) {
    return each.is_number_unsigned() &&
           each.get<uint64_t>() < static_cast<uint64_t>(model.manifest.vocab);
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), isToken))
    return ApiError{.message = "'tokens' is not an array of token ids, which are below " +
                               std::to_string(model.manifest.vocab),
                    .param = "tokens"};
  Tokenizer::Decoder decoder = model.text->decoderAfter({});
  std::string text;
  for (const Json &token : list)
    text += decoder.push(token.get<int32_t>());
  text += decoder.finish();
  return Json{{"content", text}};
}

} // namespace mica::rt::serve
