#include "backends/runtime/serve/CompletionRequest.h"
#include "backends/runtime/support/NestedJson.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace mica::rt::serve {

namespace {
/// OpenAI's limits.
constexpr SettingRange<int64_t> choiceRange{1, 128}, topLogprobsRange{0, 20};
constexpr SettingRange<double> temperatureRange{0, 2}, biasRange{-100, 100}, penaltyRange{-2, 2};
constexpr size_t maxStops = 16, maxPrompts = 128;
/// That of OpenAI's /v1/completions.
constexpr int64_t defaultCompletionTokens = 16;

/// Thrown on the way out of RequestReader; caught in parseCompletionRequest.
struct Bad {
  ApiError error;
};

std::string numberText(double value) { return Json(value).dump(); }
std::string numberText(int64_t value) { return std::to_string(value); }

/// Reads the fields of one request.
class RequestReader {
public:
  RequestReader(Endpoint endpoint, const ServedModel &model, const Json &json)
      : model(model), json(json) {
    request.endpoint = endpoint;
  }

  CompletionRequest read();

private:
  using Handler = void (RequestReader::*)(const Json &value);
  struct Field {
    Handler read;
    std::optional<Endpoint> only; ///< Absent: both endpoints have it.
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
    if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX)
      return within(INT64_MAX, range);
    return within(value.get<int64_t>(), range);
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
  Json message(const Json &value) const;

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
  void readTools(const Json &value) {
    if (!value.is_array() || !value.empty())
      fail("'tools' are not implemented, leave them out");
  }
  void readToolChoice(const Json &value) {
    if (value != "none")
      fail("'tools' are not implemented, so that 'tool_choice' can only be \"none\"");
  }

  const ServedModel &model;
  const Json &json;
  CompletionRequest request;
  std::string field; ///< Being read.
  std::optional<int64_t> topLogprobs, bestOf;
  bool wantsLogprobs = false;
};

const std::map<std::string_view, RequestReader::Field> &RequestReader::fields() {
  using R = RequestReader;
  using S = GenerationSettings;
  constexpr auto chat = Endpoint::ChatCompletions, text = Endpoint::Completions;
  static const std::map<std::string_view, Field> table = {
      {"best_of", {&R::readBestOf, text}},
      {"echo", {&R::readFalse, text}},
      {"frequency_penalty", {&R::setNumber<&S::frequencyPenalty, penaltyRange>, {}}},
      {"ignore_eos", {&R::readIgnoreEos, {}}},
      {"logit_bias", {&R::readLogitBias, {}}},
      {"logprobs", {&R::readLogprobs, {}}},
      {"max_completion_tokens", {&R::readMaxTokens, chat}},
      {"max_tokens", {&R::readMaxTokens, {}}},
      {"messages", {&R::readMessages, chat}},
      {"min_p", {&R::setNumber<&S::minP, setting_range::minP>, {}}},
      {"modalities", {&R::readModalities, chat}},
      {"model", {&R::readModel, {}}},
      {"n", {&R::readN, {}}},
      {"presence_penalty", {&R::setNumber<&S::presencePenalty, penaltyRange>, {}}},
      {"prompt", {&R::readPrompt, text}},
      {"repetition_penalty",
       {&R::setNumber<&S::repetitionPenalty, setting_range::repetitionPenalty>, {}}},
      {"response_format", {&R::readResponseFormat, chat}},
      {"seed", {&R::readSeed, {}}},
      {"stop", {&R::readStop, {}}},
      {"store", {&R::readFalse, chat}},
      {"stream", {&R::readStream, {}}},
      {"stream_options", {&R::readStreamOptions, {}}},
      {"temperature", {&R::setNumber<&S::temperature, temperatureRange>, {}}},
      {"tool_choice", {&R::readToolChoice, chat}},
      {"tools", {&R::readTools, chat}},
      {"top_k", {&R::setWholeNumber<&S::topK, setting_range::topK>, {}}},
      {"top_logprobs", {&R::readTopLogprobs, chat}},
      {"top_p", {&R::setNumber<&S::topP, setting_range::topP>, {}}},
  };
  return table;
}

void RequestReader::readModel(const Json &value) {
  if (std::string name = string(value); name != model.name)
    throw Bad{{.status = 404,
               .message = "the model '" + name + "' is not served, '" + model.name + "' is",
               .param = field,
               .code = "model_not_found"}};
}

/// A message with its parts of text as one.
Json RequestReader::message(const Json &value) const {
  if (!value.is_object() || !value.contains("role") || !value["role"].is_string())
    fail("'messages' holds something that is not an object with a \"role\"");
  Json message = value;
  Json &content = message["content"];
  if (content.is_string())
    return message;
  if (!content.is_array())
    fail("the \"content\" of a message is neither a string nor an array of parts");
  std::string text;
  for (const Json &part : content) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.contains("text") ||
        !part["text"].is_string())
      fail("a part of a message's \"content\" is not {\"type\": \"text\", \"text\": ...}");
    text += part["text"].get<std::string>();
  }
  content = std::move(text);
  return message;
}

void RequestReader::readMessages(const Json &value) {
  if (!value.is_array() || value.empty())
    failType("an array of messages");
  if (!model.chatTemplate)
    fail("the program has no chat template, use /v1/completions");
  Json messages = Json::array();
  for (const Json &each : value)
    messages.push_back(message(each));
  Result<Tokens> prompt = model.chatTemplate->encodeJson(messages.dump());
  if (!prompt)
    fail(prompt.error().message);
  request.prompts = {*std::move(prompt)};
  request.settings.endTokens = model.endOfTurn;
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
    fail("the program has no tokenizer, so that no text can be looked for");
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
  if (!value.is_number_unsigned())
    failType("a whole number from 0 to 18446744073709551615");
  request.settings.seed = value.get<uint64_t>();
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

} // namespace mica::rt::serve
