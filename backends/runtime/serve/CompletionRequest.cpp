#include "backends/runtime/serve/CompletionRequest.h"
#include "backends/runtime/support/NestedJson.h"

#include <algorithm>
#include <map>
#include <set>

namespace mica::rt::serve {

namespace {
/// OpenAI's limits.
constexpr SettingRange<int64_t> choiceRange{1, 128}, topLogprobsRange{0, 20};
constexpr SettingRange<double> temperatureRange{0, 2}, biasRange{-100, 100}, penaltyRange{-2, 2};
constexpr size_t maxStops = 16, maxPrompts = 128, maxTools = 128, maxFunctionName = 64;
/// That of OpenAI's /v1/completions.
constexpr int64_t defaultCompletionTokens = 16;

/// Thrown on the way out of RequestReader; caught in parseCompletionRequest.
struct Bad {
  ApiError error;
};

std::string numberText(double value) { return Json(value).dump(); }
std::string numberText(int64_t value) { return std::to_string(value); }

Json typed(const char *type) { return {{"type", type}}; }
Json only(Json value) { return {{"const", std::move(value)}}; }
template <typename T> Json ranged(const char *type, SettingRange<T> range) {
  return {{"type", type}, {"minimum", range.min}, {"maximum", range.max}};
}
Json arrayOf(Json items, std::optional<size_t> max = {}, size_t min = 0) {
  Json schema = {{"type", "array"}, {"items", std::move(items)}};
  if (min > 0)
    schema["minItems"] = min;
  if (max)
    schema["maxItems"] = *max;
  return schema;
}
/// `others`: the schema of fields that it does not name.
Json objectOf(Json properties, std::vector<std::string> required, Json others = false) {
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", std::move(others)}};
}
Json anyOf(std::vector<Json> schemas) { return {{"anyOf", std::move(schemas)}}; }

bool isFunctionName(const std::string &name) {
  auto isAllowed = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || c == '_' || c == '-' || c == '.');
  };
  return !name.empty() && name.size() <= maxFunctionName &&
         std::all_of(name.begin(), name.end(), isAllowed);
}

/// Reads the fields of one request.
class RequestReader {
public:
  RequestReader(Endpoint endpoint, const ServedModel &model, const Json &json)
      : model(model), json(json) {
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
    std::optional<Endpoint> only = {}; ///< Absent: both endpoints have it.
  };
  static const std::map<std::string_view, Field> &fields();

  [[noreturn]] void fail(const std::string &message) const {
    throw Bad{{.message = message, .param = field}};
  }
  [[noreturn]] void failType(const char *expected) const {
    fail("'" + field + "' is not " + expected);
  }

  template <typename T> T within(T value, SettingRange<T> range) const {
    if (!range.contains(value))
      fail("'" + field + "' is not between " + numberText(range.min) + " and " +
           numberText(range.max));
    return value;
  }
  double number(const Json &value, SettingRange<double> range) const {
    if (!value.is_number())
      failType("a number");
    return within(value.get<double>(), range);
  }
  int64_t wholeNumber(const Json &value, SettingRange<int64_t> range) const {
    if (!value.is_number_integer())
      failType("a whole number");
    return within(wholeNumberWithin(value, INT64_MIN, INT64_MAX).value_or(INT64_MAX), range);
  }
  bool boolean(const Json &value) const {
    if (!value.is_boolean())
      failType("a boolean");
    return value.get<bool>();
  }
  std::string string(const Json &value) const {
    if (!value.is_string())
      failType("a string");
    return value.get<std::string>();
  }
  Tokens ids(const Json &value) const;
  Tokens encoded(const std::string &text) const;
  std::string content(const Json &value) const;
  Json message(const Json &value);
  Json toolCall(const Json &value);
  void requireAllRead(const ChatTemplate &chat, const std::string &text) const;
  void encodeMessages();

  // Fields. Those that can only have one value have an effect with no other.
  template <auto Member, const auto &Range> void setNumber(const Json &value) {
    request.settings.*Member = number(value, Range);
  }
  template <auto Member, const auto &Range> void setWholeNumber(const Json &value) {
    request.settings.*Member = wholeNumber(value, Range);
  }
  void readModel(const Json &value);
  void readMessages(const Json &value);
  void readPrompt(const Json &value);
  void readStop(const Json &value);
  void readSeed(const Json &value);
  void readLogitBias(const Json &value);
  void readLogprobs(const Json &value);
  void readTopLogprobs(const Json &value) { topLogprobs = wholeNumber(value, topLogprobsRange); }
  void readMaxTokens(const Json &value) {
    if (request.settings.maxTokens)
      fail("'max_tokens' and 'max_completion_tokens' mean the same, leave one out");
    request.settings.maxTokens = wholeNumber(value, {1, setting_range::maxTokens.max});
  }
  void readN(const Json &value) { request.numChoices = wholeNumber(value, choiceRange); }
  void readStream(const Json &value) { request.stream = boolean(value); }
  void readStreamOptions(const Json &value);
  void readIgnoreEos(const Json &value) { request.settings.ignoreEos = boolean(value); }
  void readResponseFormat(const Json &value) {
    if (!value.is_object() || value != Json{{"type", "text"}})
      fail("only a 'response_format' of {\"type\": \"text\"} is implemented");
  }
  void readBestOf(const Json &value) { bestOf = wholeNumber(value, choiceRange); }
  void readModalities(const Json &value) {
    if (value != Json::array({"text"}))
      fail("only 'modalities' of [\"text\"] are implemented");
  }
  void readFalse(const Json &value) {
    if (boolean(value))
      fail("'" + field + "' is not implemented, leave it out");
  }
  void readTools(const Json &value);
  void readToolChoice(const Json &value);
  void readParallelToolCalls(const Json &value) { request.parallelCalls = boolean(value); }

  template <auto Member, const auto &Range> static Field numberField() {
    return {&RequestReader::setNumber<Member, Range>,
            [](const ServedModel &) { return ranged("number", Range); }};
  }
  template <auto Member, const auto &Range> static Field wholeNumberField() {
    return {&RequestReader::setWholeNumber<Member, Range>,
            [](const ServedModel &) { return ranged("integer", Range); }};
  }

  const ServedModel &model;
  const Json &json;
  CompletionRequest request;
  std::string field; ///< Being read.
  std::optional<int64_t> topLogprobs, bestOf;
  bool wantsLogprobs = false;
  Json messages = Json::array(); ///< As the template takes them.
  Json tools = Json::array();
  bool usesTools = true;           ///< `tool_choice`
  std::set<std::string> calledIds; ///< Of calls in the messages so far.
};

/// What a request may say, and what a schema says of it.
const std::map<std::string_view, RequestReader::Field> &RequestReader::fields() {
  using R = RequestReader;
  using S = GenerationSettings;
  using M = const ServedModel &;
  constexpr auto chat = Endpoint::ChatCompletions, text = Endpoint::Completions;
  constexpr Schema boolean = [](M) { return typed("boolean"); };
  constexpr Schema isFalse = [](M) { return only(false); };
  constexpr Schema choices = [](M) { return ranged("integer", choiceRange); };
  constexpr Schema newTokens = [](M) {
    return ranged("integer", SettingRange<int64_t>{1, setting_range::maxTokens.max});
  };
  constexpr Schema message = [](M) {
    Json part = objectOf({{"type", only("text")}, {"text", typed("string")}}, {"type", "text"});
    Json function = objectOf({{"name", typed("string")}, {"arguments", typed("string")}},
                             {"name", "arguments"});
    Json call = objectOf(
        {{"id", typed("string")}, {"type", only("function")}, {"function", std::move(function)}},
        {"id", "type", "function"});
    Json content = anyOf({typed("string"), arrayOf(std::move(part)), typed("null")});
    return arrayOf(
        objectOf({{"role", typed("string")},
                  {"content", std::move(content)},
                  {"name", anyOf({typed("string"), typed("null")})},
                  {"reasoning_content", anyOf({typed("string"), typed("null")})},
                  {"tool_call_id", anyOf({typed("string"), typed("null")})},
                  {"tool_calls", anyOf({arrayOf(std::move(call), {}, 1), typed("null")})}},
                 {"role"}, typed("null")),
        {}, 1);
  };
  constexpr Schema prompt = [](M model) {
    Json id = ranged("integer", SettingRange<int64_t>{0, model.manifest.vocab - 1});
    Json ids = arrayOf(std::move(id), {}, 1);
    return anyOf({typed("string"), ids, arrayOf(anyOf({typed("string"), ids}), maxPrompts, 1)});
  };
  constexpr Schema tools = [](M) {
    Json function = objectOf({{"name", {{"type", "string"}, {"pattern", "^[a-zA-Z0-9_.-]{1,64}$"}}},
                              {"description", typed("string")},
                              {"parameters", typed("object")},
                              {"strict", only(false)}},
                             {"name"});
    return arrayOf(objectOf({{"type", only("function")}, {"function", std::move(function)}},
                            {"type", "function"}),
                   maxTools);
  };
  constexpr Schema stops = [](M) {
    Json string = {{"type", "string"}, {"minLength", 1}};
    return anyOf({string, arrayOf(string, maxStops)});
  };
  static const std::map<std::string_view, Field> table = {
      {"best_of", {&R::readBestOf, choices, text}},
      {"echo", {&R::readFalse, isFalse, text}},
      {"frequency_penalty", numberField<&S::frequencyPenalty, penaltyRange>()},
      {"ignore_eos", {&R::readIgnoreEos, boolean}},
      {"logit_bias",
       {&R::readLogitBias,
        [](M) {
          return Json{{"type", "object"}, {"additionalProperties", ranged("number", biasRange)}};
        }}},
      {"logprobs",
       {&R::readLogprobs,
        [](M) { return anyOf({typed("boolean"), ranged("integer", topLogprobsRange)}); }}},
      {"max_completion_tokens", {&R::readMaxTokens, newTokens, chat}},
      {"max_tokens", {&R::readMaxTokens, newTokens}},
      {"messages", {&R::readMessages, message, chat}},
      {"min_p", numberField<&S::minP, setting_range::minP>()},
      {"modalities", {&R::readModalities, [](M) { return only(Json::array({"text"})); }, chat}},
      {"model", {&R::readModel, [](M) { return typed("string"); }}},
      {"n", {&R::readN, choices}},
      {"parallel_tool_calls", {&R::readParallelToolCalls, boolean, chat}},
      {"presence_penalty", numberField<&S::presencePenalty, penaltyRange>()},
      {"prompt", {&R::readPrompt, prompt, text}},
      {"repetition_penalty",
       numberField<&S::repetitionPenalty, setting_range::repetitionPenalty>()},
      {"response_format",
       {&R::readResponseFormat, [](M) { return objectOf({{"type", only("text")}}, {"type"}); },
        chat}},
      {"seed",
       {&R::readSeed, [](M) { return ranged("integer", SettingRange<uint64_t>{0, UINT64_MAX}); }}},
      {"stop", {&R::readStop, stops}},
      {"store", {&R::readFalse, isFalse, chat}},
      {"stream", {&R::readStream, boolean}},
      {"stream_options",
       {&R::readStreamOptions,
        [](M) { return objectOf({{"include_usage", typed("boolean")}}, {}); }}},
      {"temperature", numberField<&S::temperature, temperatureRange>()},
      {"tool_choice",
       {&R::readToolChoice, [](M) { return Json{{"enum", {"none", "auto"}}}; }, chat}},
      {"tools", {&R::readTools, tools, chat}},
      {"top_k", wholeNumberField<&S::topK, setting_range::topK>()},
      {"top_logprobs",
       {&R::readTopLogprobs, [](M) { return ranged("integer", topLogprobsRange); }, chat}},
      {"top_p", numberField<&S::topP, setting_range::topP>()},
  };
  return table;
}

Json RequestReader::schema(Endpoint endpoint, const ServedModel &model) {
  std::string required = endpoint == Endpoint::ChatCompletions ? "messages" : "prompt";
  Json properties = Json::object();
  for (const auto &[name, field] : fields()) {
    if (field.only && *field.only != endpoint)
      continue;
    Json schema = field.schema(model);
    properties[std::string(name)] =
        name == required ? schema : anyOf({std::move(schema), typed("null")});
  }
  return objectOf(std::move(properties), {required}, typed("null"));
}

void RequestReader::readModel(const Json &value) {
  if (std::string name = string(value); name != model.name) {
    Bad bad{unknownModel(name, model)};
    bad.error.param = field;
    throw bad;
  }
}

/// A string, or parts of text as one.
std::string RequestReader::content(const Json &value) const {
  if (value.is_string())
    return value.get<std::string>();
  if (!value.is_array())
    fail("the \"content\" of a message is neither a string nor an array of parts");
  std::string text;
  for (const Json &part : value) {
    if (!part.is_object() || part.size() != 2 || part.value("type", Json()) != "text" ||
        !part.contains("text") || !part["text"].is_string())
      fail("a part of a message's \"content\" is not {\"type\": \"text\", \"text\": ...}");
    text += part["text"].get<std::string>();
  }
  return text;
}

/// A call of an earlier turn. Templates take arguments as an object.
Json RequestReader::toolCall(const Json &value) {
  auto isString = [](const Json &object, const char *key) {
    return object.contains(key) && object[key].is_string();
  };
  bool good = value.is_object() && value.size() == 3 && value.value("type", Json()) == "function" &&
              isString(value, "id") && value.contains("function") &&
              value["function"].is_object() && value["function"].size() == 2;
  good = good && isString(value["function"], "name") && isString(value["function"], "arguments");
  if (!good)
    fail("a call in \"tool_calls\" is not {\"id\": ..., \"type\": \"function\", \"function\": "
         "{\"name\": ..., \"arguments\": ...}}");
  std::string problem;
  const auto &text = value["function"]["arguments"].get_ref<const std::string &>();
  Json arguments = parseNested<Json>(text, problem);
  if (!arguments.is_object())
    fail("the \"arguments\" of a call in \"tool_calls\" are not the text of a JSON object");
  calledIds.insert(value["id"].get<std::string>());
  return {{"id", value["id"]},
          {"type", "function"},
          {"function", {{"name", value["function"]["name"]}, {"arguments", std::move(arguments)}}}};
}

/// A message as templates take it.
Json RequestReader::message(const Json &value) {
  if (!value.is_object() || !value.contains("role") || !value["role"].is_string())
    fail("an element of 'messages' is not an object with a \"role\"");
  auto role = value["role"].get<std::string>();
  Json message = {{"role", role}, {"content", ""}};
  bool hasContent = false, hasCalls = false;
  for (const auto &[key, entry] : value.items()) {
    if (key == "role" || entry.is_null())
      continue;
    if (key == "content") {
      message[key] = content(entry);
      hasContent = true;
    } else if (key == "tool_calls" && role == "assistant") {
      if (!entry.is_array() || entry.empty())
        fail("the \"tool_calls\" of a message are not an array of calls");
      for (const Json &call : entry)
        message[key].push_back(toolCall(call));
      hasCalls = true;
    } else if (key == "tool_call_id" && role == "tool") {
      if (!entry.is_string() || !calledIds.contains(entry.get<std::string>()))
        fail("the \"tool_call_id\" of a message is not the \"id\" of a call before it");
      message[key] = entry;
    } else if (key == "name" || (key == "reasoning_content" && role == "assistant")) {
      if (!entry.is_string())
        fail("the \"" + key + "\" of a message is not a string");
      if (key != "name" && !model.answers.reasoning)
        fail("the chat template does not support reasoning, leave \"reasoning_content\" out");
      message[key] = entry;
    } else {
      fail("the \"" + key + "\" of a message of the role \"" + role +
           "\" is not implemented, leave it out");
    }
  }
  if (!hasContent && !hasCalls)
    fail("the \"content\" of a message is neither a string nor an array of parts");
  if (hasCalls && model.answers.calls && model.answers.calls->asContent) {
    auto text = message["content"].get<std::string>();
    for (const Json &call : message["tool_calls"])
      text += (text.empty() ? "" : "\n") +
              model.answers.calls->write({call["function"]["name"].get<std::string>(),
                                          call["function"]["arguments"].dump()});
    message["content"] = std::move(text);
  }
  return message;
}

void RequestReader::readMessages(const Json &value) {
  if (!value.is_array() || value.empty())
    failType("an array of messages");
  if (!model.chatTemplate)
    fail("the program has no chat template, use /v1/completions");
  for (const Json &each : value)
    messages.push_back(message(each));
}

void RequestReader::readTools(const Json &value) {
  if (!value.is_array() || value.size() > maxTools)
    failType("an array of at most 128 tools");
  std::set<std::string> names;
  for (const Json &tool : value) {
    bool good = tool.is_object() && tool.value("type", Json()) == "function" && tool.size() == 2 &&
                tool.contains("function") && tool["function"].is_object() &&
                tool["function"].contains("name") && tool["function"]["name"].is_string();
    if (!good)
      fail("an element of 'tools' is not {\"type\": \"function\", \"function\": {\"name\": ...}}");
    Json function = Json::object();
    for (const auto &[key, entry] : tool["function"].items()) {
      if (key == "strict" && (entry.is_null() || entry == false))
        continue;
      bool fits = key == "name"          ? isFunctionName(entry.get<std::string>())
                  : key == "description" ? entry.is_string()
                  : key == "parameters"  ? entry.is_object()
                                         : false;
      if (!fits)
        fail("the \"" + key + "\" of a function in 'tools' is not implemented" +
             (key == "name" ? ", it consists of up to 64 letters, digits, dots, dashes and "
                              "underscores"
                            : ", leave it out"));
      function[key] = entry;
    }
    if (!names.insert(function["name"].get<std::string>()).second)
      fail("two functions in 'tools' have the same \"name\"");
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  request.tools = {names.begin(), names.end()};
}

void RequestReader::readToolChoice(const Json &value) {
  if (value != "none" && value != "auto")
    fail("only a 'tool_choice' of \"auto\" or \"none\" is implemented");
  usesTools = value == "auto";
}

/// Many templates ignore what they do not support: changing it then does not change the text.
void RequestReader::requireAllRead(const ChatTemplate &chat, const std::string &text) const {
  auto requireRead = [&](const std::string &what, auto change) {
    Json changed = messages;
    bool some = false;
    for (Json &each : changed)
      some |= change(each);
    if (!some)
      return;
    Result<std::string> other = chat.renderJson(changed.dump());
    if (other && *other == text)
      fail("the chat template ignores " + what);
  };
  auto extend = [](Json &value) { value = value.get<std::string>() + "x"; };
  requireRead("messages of roles other than system, user and assistant", [&](Json &each) {
    bool other = each["role"] != "system" && each["role"] != "user" && each["role"] != "assistant";
    if (other)
      extend(each["content"]);
    return other;
  });
  requireRead("the \"name\" of a message", [&](Json &each) {
    bool named = each.contains("name");
    if (named)
      extend(each["name"]);
    return named;
  });
  if (model.answers.calls && model.answers.calls->asContent)
    return;
  requireRead("the \"tool_calls\" of a message", [&](Json &each) {
    bool calls = each.contains("tool_calls");
    if (calls)
      for (Json &call : each["tool_calls"])
        extend(call["function"]["name"]);
    return calls;
  });
}

/// Once all fields are known.
void RequestReader::encodeMessages() {
  if (!usesTools)
    request.tools.clear();
  std::optional<ChatTemplate> withTools;
  if (!request.tools.empty()) {
    field = "tools";
    if (!model.answers.calls) {
      std::string known;
      for (const ToolCallFormat &format : toolCallFormats())
        known += (known.empty() ? "" : ", ") + std::string(format.name);
      fail("'tools' are not supported for this model: its chat template uses none of the supported "
           "call formats: " +
           known);
    }
    Result<ChatTemplate> changed = model.chatTemplate->withTools(tools.dump());
    if (!changed)
      fail(changed.error().message);
    withTools.emplace(*std::move(changed));
  }
  const ChatTemplate &used = withTools ? *withTools : *model.chatTemplate;
  field = "messages";
  Result<ChatTemplate::Prompt> prompt = used.encodeJson(messages.dump());
  if (!prompt)
    fail(prompt.error().message);
  requireAllRead(used, prompt->text);
  request.prompts = {std::move(prompt->tokens)};
  request.settings.endTokens = used.endOfTurn();
  if (model.answers.reasoning) {
    std::string_view text = prompt->text;
    text = text.substr(0, text.find_last_not_of(" \n") + 1);
    request.reasons = text.ends_with(model.answers.reasoning->begin);
  }
}

Tokens RequestReader::ids(const Json &value) const {
  Tokens tokens;
  for (const Json &id : value)
    tokens.push_back(static_cast<int32_t>(wholeNumber(id, {0, model.manifest.vocab - 1})));
  return tokens;
}

Tokens RequestReader::encoded(const std::string &text) const {
  if (!model.text)
    fail("the program has no tokenizer, write the prompt as an array of token ids");
  Result<Tokens> tokens = model.text->encode(text);
  if (!tokens)
    fail(tokens.error().message);
  return *std::move(tokens);
}

void RequestReader::readPrompt(const Json &value) {
  auto isArrayOf = [&](auto is) {
    return value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is);
  };
  if (value.is_string())
    request.prompts = {encoded(value.get<std::string>())};
  else if (isArrayOf([](const Json &each) { return each.is_number_integer(); }))
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
    fail("the program has no tokenizer, which 'stop' needs");
  Json list = value.is_array() ? value : Json::array({value});
  if (list.size() > maxStops)
    fail("'stop' has more than " + std::to_string(maxStops) + " strings");
  for (const Json &each : list) {
    if (!each.is_string() || each.get_ref<const std::string &>().empty())
      failType("a string or an array of strings, none of them empty");
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
    if (failure != std::errc() || end != id.data() + id.size() || token < 0 ||
        token >= model.manifest.vocab)
      fail("'" + id + "' in 'logit_bias' is not the id of a token, which are below " +
           std::to_string(model.manifest.vocab));
    request.settings.logitBias.push_back({token, static_cast<float>(number(bias, biasRange))});
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
      fail("the field '" + key + "' is not implemented, leave it out");
    (this->*found->second.read)(value);
  }
  field = chat ? "messages" : "prompt";
  if (!json.contains(field))
    fail("'" + field + "' is missing");
  if (chat)
    encodeMessages();
  for (const char *key : {"tool_choice", "parallel_tool_calls"}) {
    field = key;
    bool asks = json.contains(field) && json[field] != "none";
    if (asks && tools.empty())
      fail("'" + field + "' goes with 'tools'");
  }
  if (bestOf && *bestOf != request.numChoices) {
    field = "best_of";
    fail("a 'best_of' other than 'n' is not implemented");
  }
  if (json.contains("stream_options") && !request.stream) {
    field = "stream_options";
    fail("'stream_options' go with \"stream\": true");
  }
  if (topLogprobs && !wantsLogprobs) {
    field = "top_logprobs";
    fail("'top_logprobs' goes with \"logprobs\": true");
  }
  if (wantsLogprobs)
    request.topLogprobs = topLogprobs.value_or(0);
  if (!request.settings.maxTokens)
    request.settings.maxTokens = chat ? model.manifest.maxSeq : defaultCompletionTokens;
  field = chat ? "messages" : "prompt";
  for (const Tokens &prompt : request.prompts)
    if (Status fits = checkPrompt(model.manifest, prompt); !fits)
      throw Bad{{.message = fits.error().message,
                 .param = field,
                 .code = static_cast<int64_t>(prompt.size()) > model.manifest.maxSeq
                             ? std::optional<std::string>("context_length_exceeded")
                             : std::nullopt}};
  if (Status good = checkSettings(request.settings, model.manifest); !good)
    throw Bad{{.message = good.error().message}};
  return std::move(request);
}
} // namespace

std::variant<Json, ApiError> parseObject(std::string_view body) {
  std::string problem;
  Json json = parseNested<Json>(body, problem);
  if (json.is_discarded())
    return ApiError{.message = "the body is not JSON" + (problem.empty() ? "" : ": " + problem)};
  if (!json.is_object())
    return ApiError{.message = "the body is not a JSON object"};
  Json present = Json::object();
  for (auto &[key, value] : json.items())
    if (!value.is_null())
      present[key] = std::move(value);
  return present;
}

Json requestSchema(Endpoint endpoint, const ServedModel &model) {
  return RequestReader::schema(endpoint, model);
}

std::variant<CompletionRequest, ApiError>
parseCompletionRequest(Endpoint endpoint, std::string_view body, const ServedModel &model) {
  std::variant<Json, ApiError> json = parseObject(body);
  if (auto *error = std::get_if<ApiError>(&json))
    return *error;
  try {
    return RequestReader(endpoint, model, std::get<Json>(json)).read();
  } catch (Bad &bad) {
    return std::move(bad.error);
  }
}

ApiError unknownModel(const std::string &name, const ServedModel &model) {
  return {.status = 404,
          .message = "the model '" + name + "' is not served, '" + model.name + "' is",
          .code = "model_not_found"};
}

} // namespace mica::rt::serve
