#include "backends/runtime/serve/ParseRequest.h"
#include "backends/runtime/engine/SettingTable.h"
#include "backends/runtime/serve/FieldReader.h"
#include "backends/runtime/serve/JsonSchema.h"
#include "backends/runtime/serve/MessageReader.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/text/base/Utf8.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace mica::rt::serve {

using namespace json_schema;

namespace {
/// OpenAI's limits.
constexpr SettingRange<int64_t> choiceRange{1, 128}, topLogprobsRange{0, 20};
constexpr SettingRange<double> biasRange{-100, 100};
constexpr size_t maxStops = 16, maxPrompts = 128;
constexpr int64_t maxStopCharacters = 1024;
/// The default of OpenAI's /v1/completions.
constexpr int64_t defaultCompletionTokens = 16;

/// Reads the fields of one request.
class RequestReader : FieldReader {
public:
  RequestReader(Endpoint endpoint, const ServedModel &model, const Json &json,
                const std::stop_token &stop)
      : FieldReader(stop), model(model), json(json), conversation(model, request, stop) {
    request.endpoint = endpoint;
  }

  CompletionRequest read();
  static Json schema(Endpoint endpoint, const ServedModel &model);

private:
  using Handler = void (RequestReader::*)(const Json &value);
  using Schema = Json (*)(const ServedModel &model);
  struct Field {
    Handler read;
    Schema schema;
    std::optional<Endpoint> only = {}; ///< absent: supported by both endpoints
    Schema inChats = nullptr;          ///< null: as in `schema`
  };
  using Fields = std::map<std::string_view, Field>;
  static const Fields &fields();

  Tokens ids(const Json &value) const;
  Tokens encoded(const std::string &text) const;

  // Fields. Some accept only the value that has no effect.
  template <size_t Row> void readSetting(const Json &value) {
    constexpr auto setting = std::get<Row>(kSettings);
    request.settings.*setting.own = settingWithin(value, *setting.inRequests);
  }
  double settingWithin(const Json &value, SettingRange<double> range) const {
    return number(value, range);
  }
  int64_t settingWithin(const Json &value, SettingRange<int64_t> range) const {
    return wholeNumber(value, range);
  }
  void readModel(const Json &value);
  void readMessages(const Json &value) { conversation.readMessages(value); }
  void readPrompt(const Json &value);
  void readStop(const Json &value);
  void readSeed(const Json &value);
  void readLogitBias(const Json &value);
  void readLogprobs(const Json &value);
  void readTopLogprobs(const Json &value) { topLogprobs = wholeNumber(value, topLogprobsRange); }
  void readMaxTokens(const Json &value) {
    if (request.settings.maxTokens)
      fail("'max_tokens' and 'max_completion_tokens' mean the same; leave one out");
    request.settings.maxTokens = wholeNumber(value, {1, setting_range::maxTokens.max});
  }
  void readN(const Json &value) { request.numChoices = wholeNumber(value, choiceRange); }
  void readStream(const Json &value) { request.stream = boolean(value); }
  void readStreamOptions(const Json &value);
  void readIgnoreEos(const Json &value) { request.settings.ignoreEos = boolean(value); }
  void readResponseFormat(const Json &value) {
    if (!value.is_object() || value != Json{{"type", "text"}})
      fail("only a 'response_format' of {\"type\": \"text\"} is supported");
  }
  void readBestOf(const Json &value) { bestOf = wholeNumber(value, choiceRange); }
  void readModalities(const Json &value) {
    if (value != Json::array({"text"}))
      fail("only 'modalities' of [\"text\"] are supported");
  }
  void readFalse(const Json &value) {
    if (boolean(value))
      fail("'" + field + "' is not supported; leave it out");
  }
  void readTools(const Json &value) { conversation.readTools(value); }
  void readToolChoice(const Json &value) { conversation.readToolChoice(value); }
  void readParallelToolCalls(const Json &value) { request.parallelCalls = boolean(value); }

  /// Adds the settings of samplers that requests have.
  template <size_t... Rows> static void addSettings(Fields &fields, std::index_sequence<Rows...>) {
    (addSetting<Rows>(fields), ...);
  }
  template <size_t Row> static void addSetting(Fields &fields) {
    constexpr auto setting = std::get<Row>(kSettings);
    if constexpr (setting.inRequests.has_value())
      fields[setting.name] = {&RequestReader::readSetting<Row>, [](const ServedModel &) {
                                return ranged(*std::get<Row>(kSettings).inRequests);
                              }};
  }

  const ServedModel &model;
  const Json &json;
  CompletionRequest request;
  MessageReader conversation;
  std::optional<int64_t> topLogprobs, bestOf;
  bool wantsLogprobs = false;
};

/// The supported fields, with their readers and schemas.
const RequestReader::Fields &RequestReader::fields() {
  using R = RequestReader;
  using M = const ServedModel &;
  constexpr auto chat = Endpoint::ChatCompletions, text = Endpoint::Completions;
  constexpr Schema boolean = [](M) { return typed("boolean"); };
  constexpr Schema isFalse = [](M) { return only(false); };
  constexpr Schema choices = [](M) { return ranged(choiceRange); };
  constexpr Schema newTokens = [](M) {
    return ranged(SettingRange<int64_t>{1, setting_range::maxTokens.max});
  };
  constexpr Schema message = [](M) {
    Json part = objectOf({{"type", only("text")}, {"text", typed("string")}}, {"type", "text"},
                         typed("null"));
    Json function = objectOf({{"name", typed("string")}, {"arguments", typed("string")}},
                             {"name", "arguments"}, typed("null"));
    Json call = objectOf(
        {{"id", typed("string")}, {"type", only("function")}, {"function", std::move(function)}},
        {"id", "type", "function"}, typed("null"));
    Json content = anyOf({typed("string"), arrayOf(std::move(part)), typed("null")});
    return arrayOf(objectOf({{"role", typed("string")},
                             {"content", std::move(content)},
                             {"name", orNull(typed("string"))},
                             {"reasoning_content", orNull(typed("string"))},
                             {"tool_call_id", orNull(typed("string"))},
                             {"tool_calls", orNull(arrayOf(std::move(call), {}, 1))}},
                            {"role"}, typed("null")),
                   {}, 1);
  };
  constexpr Schema prompt = [](M model) {
    Json id = ranged(SettingRange<int64_t>{0, model.manifest.vocab - 1});
    Json ids = arrayOf(std::move(id), {}, 1);
    return anyOf({typed("string"), ids, arrayOf(anyOf({typed("string"), ids}), maxPrompts, 1)});
  };
  constexpr Schema tools = [](M) {
    Json function = objectOf({{"name", {{"type", "string"}, {"pattern", "^[a-zA-Z0-9_.-]{1,64}$"}}},
                              {"description", orNull(typed("string"))},
                              {"parameters", orNull(typed("object"))},
                              {"strict", orNull(only(false))}},
                             {"name"}, typed("null"));
    return arrayOf(objectOf({{"type", only("function")}, {"function", std::move(function)}},
                            {"type", "function"}, typed("null")),
                   maxTools);
  };
  constexpr Schema stops = [](M) {
    Json string = {{"type", "string"}, {"minLength", 1}, {"maxLength", maxStopCharacters}};
    return anyOf({string, arrayOf(string, maxStops)});
  };
  static const Fields all = [&] {
    Fields table = {
        {"best_of", {&R::readBestOf, choices, text}},
        {"echo", {&R::readFalse, isFalse, text}},
        {"ignore_eos", {&R::readIgnoreEos, boolean}},
        {"logit_bias",
         {&R::readLogitBias,
          [](M) { return Json{{"type", "object"}, {"additionalProperties", ranged(biasRange)}}; }}},
        {"logprobs", {&R::readLogprobs, [](M) { return ranged(topLogprobsRange); }, {}, boolean}},
        {"max_completion_tokens", {&R::readMaxTokens, newTokens, chat}},
        {"max_tokens", {&R::readMaxTokens, newTokens}},
        {"messages", {&R::readMessages, message, chat}},
        {"modalities", {&R::readModalities, [](M) { return only(Json::array({"text"})); }, chat}},
        {"model", {&R::readModel, [](M model) { return only(model.name); }}},
        {"n", {&R::readN, choices}},
        {"parallel_tool_calls", {&R::readParallelToolCalls, boolean, chat}},
        {"prompt", {&R::readPrompt, prompt, text}},
        {"response_format",
         {&R::readResponseFormat, [](M) { return objectOf({{"type", only("text")}}, {"type"}); },
          chat}},
        {"seed", {&R::readSeed, [](M) { return ranged(SettingRange<uint64_t>{0, UINT64_MAX}); }}},
        {"stop", {&R::readStop, stops}},
        {"store", {&R::readFalse, isFalse, chat}},
        {"stream", {&R::readStream, boolean}},
        {"stream_options",
         {&R::readStreamOptions,
          [](M) {
            return objectOf({{"include_usage", orNull(typed("boolean"))}}, {}, typed("null"));
          }}},
        {"tool_choice",
         {&R::readToolChoice, [](M) { return Json{{"enum", {"none", "auto"}}}; }, chat}},
        {"tools", {&R::readTools, tools, chat}},
        {"top_logprobs", {&R::readTopLogprobs, [](M) { return ranged(topLogprobsRange); }, chat}},
    };
    addSettings(table, std::make_index_sequence<std::tuple_size_v<decltype(kSettings)>>());
    return table;
  }();
  return all;
}

Json RequestReader::schema(Endpoint endpoint, const ServedModel &model) {
  std::string required = endpoint == Endpoint::ChatCompletions ? "messages" : "prompt";
  Json properties = Json::object();
  for (const auto &[name, field] : fields()) {
    if (field.only && *field.only != endpoint)
      continue;
    bool inChats = endpoint == Endpoint::ChatCompletions && field.inChats;
    Json schema = inChats ? field.inChats(model) : field.schema(model);
    properties[std::string(name)] = name == required ? schema : orNull(std::move(schema));
  }
  return objectOf(std::move(properties), {required}, typed("null"));
}

void RequestReader::readModel(const Json &value) {
  if (std::string name = string(value); name != model.name) {
    BadRequest bad{unknownModel(name, model)};
    bad.error.param = field;
    throw bad;
  }
}

Tokens RequestReader::ids(const Json &value) const {
  Tokens tokens;
  int64_t last = model.manifest.vocab - 1;
  for (const Json &each : value) {
    std::optional<int64_t> id = wholeNumberWithin(each, 0, last);
    if (!id)
      fail("a token id in '" + field + "' is not " + wholeNumberFrom(0, last));
    tokens.push_back(static_cast<int32_t>(*id));
  }
  requireFits(tokens, model.manifest, /*isText=*/false);
  return tokens;
}

Tokens RequestReader::encoded(const std::string &text) const {
  if (!model.text)
    fail(noTokenizer + std::string("as the 'prompt'"));
  requireNotStopped();
  Result<Tokens> tokens = model.text->encode(text, maxEncodedTokens(model.manifest));
  if (!tokens)
    fail(tokens.error().message);
  requireFits(*tokens, model.manifest, /*isText=*/true);
  return *std::move(tokens);
}

void RequestReader::readPrompt(const Json &value) {
  auto isArrayOf = [&](auto is) {
    return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is);
  };
  if (value.is_string())
    request.prompts = {encoded(value.get<std::string>())};
  else if (isArrayOf([](const Json &each) { return each.is_number(); }))
    request.prompts = {ids(value)};
  else if (isArrayOf([](const Json &each) { return each.is_string() || each.is_array(); }) &&
           value.size() <= maxPrompts)
    for (const Json &each : value)
      request.prompts.push_back(each.is_string() ? encoded(each.get<std::string>()) : ids(each));
  else
    failType("a string, an array of token ids, or an array of at most 128 of these");
}

void RequestReader::readStop(const Json &value) {
  if (!model.text)
    fail("the program has no tokenizer, which 'stop' needs; leave it out");
  Json list = value.is_array() ? value : Json::array({value});
  if (list.size() > maxStops)
    fail("'stop' has more than " + std::to_string(maxStops) + " strings");
  for (const Json &each : list) {
    if (!each.is_string() || each.get_ref<const std::string &>().empty())
      failType("a string or an array of strings, none of them empty");
    if (tokenizer::countCharacters(each.get_ref<const std::string &>()) > maxStopCharacters)
      fail("a string in 'stop' has more than " + std::to_string(maxStopCharacters) + " characters");
    request.settings.stops.push_back(each.get<std::string>());
  }
}

void RequestReader::readSeed(const Json &value) {
  request.settings.seed = unsignedNumber(value);
  if (!request.settings.seed)
    failType("a whole number from 0 to 18446744073709551615");
}

void RequestReader::readLogitBias(const Json &value) {
  if (!value.is_object())
    failType("an object of token ids and numbers");
  for (const auto &[id, bias] : value.items()) {
    int32_t token = 0;
    auto [end, failure] = std::from_chars(id.data(), id.data() + id.size(), token);
    // Spelled in one way, so that no token has two entries.
    if (failure != std::errc() || id != std::to_string(token) || token < 0 ||
        token >= model.manifest.vocab)
      fail("'" + id + "' in 'logit_bias' is not the id of a token, which are below " +
           std::to_string(model.manifest.vocab));
    if (!bias.is_number() || !biasRange.contains(bias.get<double>()))
      fail("the value of '" + id + "' in 'logit_bias' is not a number from -100 to 100");
    request.settings.logitBias.push_back({token, bias.get<float>()});
  }
}

void RequestReader::readLogprobs(const Json &value) {
  if (request.endpoint == Endpoint::Completions)
    request.topLogprobs = wholeNumber(value, topLogprobsRange);
  else
    wantsLogprobs = boolean(value);
}

void RequestReader::readStreamOptions(const Json &value) {
  if (!value.is_object())
    failType("an object");
  for (const auto &[key, option] : value.items()) {
    if (option.is_null())
      continue;
    if (key != "include_usage")
      fail("'stream_options' has no \"" + key + "\", only \"include_usage\"");
    request.includeUsage = boolean(option);
  }
}

CompletionRequest RequestReader::read() {
  bool chat = request.endpoint == Endpoint::ChatCompletions;
  for (const auto &[key, value] : json.items()) {
    field = key;
    auto found = fields().find(key);
    if (found == fields().end() || (found->second.only && *found->second.only != request.endpoint))
      fail("the field '" + key + "' is not supported; leave it out");
    (this->*found->second.read)(value);
  }
  field = chat ? "messages" : "prompt";
  if (!json.contains(field))
    fail("'" + field + "' is missing");
  if (chat)
    conversation.encode();
  for (const char *key : {"tool_choice", "parallel_tool_calls"}) {
    field = key;
    bool isUsed = json.contains(field) && json[field] != "none";
    if (isUsed && !conversation.hasTools())
      fail("'" + field + "' requires 'tools'");
  }
  if (bestOf && *bestOf != request.numChoices) {
    field = "best_of";
    fail("a 'best_of' other than 'n' is not supported");
  }
  if (json.contains("stream_options") && !request.stream) {
    field = "stream_options";
    fail("'stream_options' requires \"stream\": true");
  }
  if (topLogprobs && !wantsLogprobs) {
    field = "top_logprobs";
    fail("'top_logprobs' requires \"logprobs\": true");
  }
  if (wantsLogprobs)
    request.topLogprobs = topLogprobs.value_or(0);
  if (!request.settings.maxTokens)
    request.settings.maxTokens = chat ? model.manifest.maxSeq : defaultCompletionTokens;
  request.settings.lookup = model.lookup;
  request.settings.mtp = model.mtp;
  if (Status valid = checkSettings(request.settings, model.manifest); !valid)
    throw BadRequest{{.message = valid.error().message}};
  return std::move(request);
}
} // namespace

std::variant<Json, ApiError> parseObject(std::string_view body, const std::stop_token &stop) {
  std::string problem;
  Json json = parseNested(body, problem, stop);
  if (stop.stop_requested())
    return shuttingDown();
  if (body.empty())
    return ApiError{.message = "the body is empty; send a JSON object"};
  if (json.is_discarded())
    return ApiError{.message = "the body cannot be read: " + problem};
  if (!json.is_object())
    return ApiError{.message = "the body is not a JSON object"};
  // Looking each key up among those before it would take quadratic time.
  auto &fields = json.get_ref<Json::object_t &>();
  Json::object_t present;
  present.reserve(fields.size());
  for (auto &[key, value] : fields)
    if (!value.is_null())
      present.emplace_back(key, std::move(value));
  return Json(std::move(present));
}

Json requestSchema(Endpoint endpoint, const ServedModel &model) {
  return RequestReader::schema(endpoint, model);
}

std::variant<CompletionRequest, ApiError> parseCompletionRequest(Endpoint endpoint,
                                                                 std::string_view body,
                                                                 const ServedModel &model,
                                                                 const std::stop_token &stop) {
  std::variant<Json, ApiError> json = parseObject(body, stop);
  if (auto *error = std::get_if<ApiError>(&json))
    return *error;
  try {
    return RequestReader(endpoint, model, std::get<Json>(json), stop).read();
  } catch (BadRequest &bad) {
    return std::move(bad.error);
  }
}

ApiError unknownModel(const std::string &name, const ServedModel &model) {
  return {.status = 404,
          .message = "model '" + name + "' not found; this server serves '" + model.name + "'",
          .code = "model_not_found"};
}

} // namespace mica::rt::serve
