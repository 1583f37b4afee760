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

Api::Api(ServedModel model, EngineThread &engine, uint64_t cacheBytes, Options options)
    : model(std::move(model)), engine(engine), cacheBytes(cacheBytes), options(std::move(options)),
      started(unixSeconds()) {}

/// A schema of an object that has one field; null is the same as no field.
static Json objectWith(const char *name, Json schema) {
  return {{"type", "object"},
          {"properties", {{name, std::move(schema)}}},
          {"required", {name}},
          {"additionalProperties", {{"type", "null"}}}};
}

const std::map<std::string_view, Api::Route> &Api::routes() {
  using M = const ServedModel &;
  static constexpr const char *html = "text/html; charset=utf-8",
                              *script = "text/javascript; charset=utf-8",
                              *style = "text/css; charset=utf-8";
  // 400, 401 and 413 are of all routes with a body or a key.
  const std::vector<unsigned> ofCompletions = {404, 429, 500, 503, 504};
  static const std::map<std::string_view, Route> table = {
      {"/", {"GET", &Api::page, "The web page", nullptr, html, {}, /*open=*/true}},
      {"/app.js", {"GET", &Api::page, "Its script", nullptr, script, {}, /*open=*/true}},
      {"/style.css", {"GET", &Api::page, "Its style", nullptr, style, {}, /*open=*/true}},
      {"/health",
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
void Api::openApi(const HttpRequest &, std::shared_ptr<Exchange> exchange) {
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
      statuses.insert(statuses.end(), {400, 413});
    }
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
  auto found = routes().find(request.path);
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

void Api::complete(Endpoint endpoint, const HttpRequest &request,
                   std::shared_ptr<Exchange> exchange) {
  if (draining)
    return replyError(exchange, {.status = 503, .message = "the server is shutting down"},
                      {{"Retry-After", "5"}});
  auto parsed = parseCompletionRequest(endpoint, request.body, model);
  if (const auto *error = std::get_if<ApiError>(&parsed)) {
    metrics.countRequest("refused");
    return replyError(exchange, *error);
  }
  auto &wanted = std::get<CompletionRequest>(parsed);
  auto completion =
      std::make_shared<Completion>(wanted, model, engine, metrics, std::move(exchange));
  completion->start(std::move(wanted.prompts), options.requestTimeout);
}

/// The web page, which may run and load what the server itself gives, and nothing else.
void Api::page(const HttpRequest &request, std::shared_ptr<Exchange> exchange) {
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

void Api::models(const HttpRequest &, std::shared_ptr<Exchange> exchange) {
  Json entry = {{"id", model.name},
                {"object", "model"},
                {"created", started},
                {"owned_by", "mica"},
                {"meta",
                 {{"weights", model.manifest.weights},
                  {"context_length", model.manifest.maxSeq},
                  {"vocabulary_size", model.manifest.vocab},
                  {"chat", model.chatTemplate != nullptr}}}};
  exchange->reply(
      {.body = toJsonText({{"object", "list"}, {"data", Json::array({std::move(entry)})}})});
}

void Api::health(const HttpRequest &, std::shared_ptr<Exchange> exchange) {
  exchange->reply({.status = draining ? 503u : 200u,
                   .body = toJsonText({{"status", draining ? "draining" : "ready"}})});
}

void Api::metricsText(const HttpRequest &, std::shared_ptr<Exchange> exchange) {
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

void Api::tokenize(const HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  auto content = onlyField(request.body, "content");
  if (auto *error = std::get_if<ApiError>(&content))
    return replyError(exchange, *error);
  if (!std::get<Json>(content).is_string())
    return replyError(exchange, {.message = "'content' is not a string", .param = "content"});
  if (!model.text)
    return replyError(exchange, {.message = "the program has no tokenizer"});
  Result<Tokens> tokens = model.text->encode(std::get<Json>(content).get<std::string>());
  if (!tokens)
    return replyError(exchange, {.message = tokens.error().message, .param = "content"});
  exchange->reply({.body = toJsonText({{"tokens", *tokens}})});
}

void Api::detokenize(const HttpRequest &request, std::shared_ptr<Exchange> exchange) {
  auto tokens = onlyField(request.body, "tokens");
  if (auto *error = std::get_if<ApiError>(&tokens))
    return replyError(exchange, *error);
  if (!model.text)
    return replyError(exchange, {.message = "the program has no tokenizer"});
  const Json &list = std::get<Json>(tokens);
  auto isToken = [&](const Json &each) {
    return each.is_number_unsigned() &&
           each.get<uint64_t>() < static_cast<uint64_t>(model.manifest.vocab);
  };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), isToken))
    return replyError(exchange,
                      {.message = "'tokens' is not an array of token ids, which are below " +
                                  std::to_string(model.manifest.vocab),
                       .param = "tokens"});
  Tokenizer::Decoder decoder = model.text->decoderAfter({});
  std::string text;
  for (const Json &token : list)
    text += decoder.push(token.get<int32_t>());
  text += decoder.finish();
  exchange->reply({.body = toJsonText({{"content", text}})});
}

} // namespace mica::rt::serve
