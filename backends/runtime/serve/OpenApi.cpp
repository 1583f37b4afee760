#include "backends/runtime/serve/OpenApi.h"
#include "backends/runtime/serve/JsonSchema.h"

namespace mica::rt::serve {

using namespace json_schema;

namespace {
Json natural() { return {{"type", "integer"}, {"minimum", 0}}; }
/// An object all of whose fields are required.
Json record(Json properties) {
  std::vector<std::string> names;
  for (const auto &[name, schema] : properties.items())
    names.push_back(name);
  return objectOf(std::move(properties), std::move(names));
}

/// The fields that complete answers and events begin with.
Json answer(const char *object, Json choice) {
  return {{"id", typed("string")},
          {"object", only(object)},
          {"created", natural()},
          {"model", typed("string")},
          {"choices", arrayOf(std::move(choice))}};
}

Json completeAnswer(const char *object, Json choice) {
  Json properties = answer(object, std::move(choice));
  properties["usage"] = replySchema("Usage");
  return record(std::move(properties));
}

/// Events have `usage` with stream_options.include_usage: the last one, which has no choices, the
/// object, and others null.
Json event(const char *object, Json choice) {
  Json properties = answer(object, std::move(choice));
  properties["usage"] = orNull(replySchema("Usage"));
  return objectOf(std::move(properties), {"id", "object", "created", "model", "choices"});
}

Json finishReason(bool chat) {
  return {{"enum", chat ? Json{"stop", "length", "tool_calls"} : Json{"stop", "length"}}};
}

Json chatLogprobs() {
  Json token = {{"token", typed("string")},
                {"logprob", typed("number")},
                {"bytes", orNull(arrayOf(ranged(SettingRange<int64_t>{0, 255})))}};
  Json entry = token;
  entry["top_logprobs"] = arrayOf(record(std::move(token)));
  return orNull(record({{"content", arrayOf(record(std::move(entry)))}}));
}

Json textLogprobs() {
  Json top = {{"type", "object"}, {"additionalProperties", typed("number")}};
  return orNull(record({{"tokens", arrayOf(typed("string"))},
                        {"token_logprobs", arrayOf(typed("number"))},
                        {"top_logprobs", arrayOf(std::move(top))},
                        {"text_offset", arrayOf(natural())}}));
}

Json textChoice(bool complete) {
  return record({{"index", natural()},
                 {"text", typed("string")},
                 {"logprobs", textLogprobs()},
                 {"finish_reason", complete ? finishReason(false) : orNull(finishReason(false))}});
}

Json chatChoice() {
  Json function = record({{"name", typed("string")}, {"arguments", typed("string")}});
  Json call = record(
      {{"id", typed("string")}, {"type", only("function")}, {"function", std::move(function)}});
  Json message = objectOf({{"role", only("assistant")},
                           {"content", orNull(typed("string"))},
                           {"refusal", typed("null")},
                           {"reasoning_content", typed("string")},
                           {"tool_calls", arrayOf(std::move(call), {}, 1)}},
                          {"role", "content", "refusal"});
  return record({{"index", natural()},
                 {"message", std::move(message)},
                 {"logprobs", chatLogprobs()},
                 {"finish_reason", finishReason(true)}});
}

Json chatDelta() {
  // The first event of a call has its name, further ones parts of its arguments.
  Json function =
      objectOf({{"name", typed("string")}, {"arguments", typed("string")}}, {"arguments"});
  Json call = objectOf({{"index", natural()},
                        {"id", typed("string")},
                        {"type", only("function")},
                        {"function", std::move(function)}},
                       {"index", "function"});
  Json delta = objectOf({{"role", only("assistant")},
                         {"content", typed("string")},
                         {"reasoning_content", typed("string")},
                         {"tool_calls", arrayOf(std::move(call), 1, 1)}},
                        {});
  return record({{"index", natural()},
                 {"delta", std::move(delta)},
                 {"logprobs", chatLogprobs()},
                 {"finish_reason", orNull(finishReason(true))}});
}
} // namespace

Json replySchema(const char *name) {
  return {{"$ref", std::string("#/components/schemas/") + name}};
}

Json replySchemas() {
  Json string = typed("string"), maybe = orNull(string);
  Json error = record({{"message", string}, {"type", string}, {"param", maybe}, {"code", maybe}});
  Json meta = record({{"weights", string},
                      {"context_length", natural()},
                      {"vocabulary_size", natural()},
                      {"chat", typed("boolean")}});
  return {
      {"ChatCompletion", completeAnswer("chat.completion", chatChoice())},
      {"ChatCompletionChunk", event("chat.completion.chunk", chatDelta())},
      {"Completion", completeAnswer("text_completion", textChoice(/*complete=*/true))},
      {"CompletionChunk", event("text_completion", textChoice(/*complete=*/false))},
      {"Error", record({{"error", std::move(error)}})},
      {"Health", record({{"status", {{"enum", {"loading", "ready", "draining", "failed"}}}}})},
      {"Model", record({{"id", string},
                        {"object", only("model")},
                        {"created", natural()},
                        {"owned_by", string},
                        {"meta", std::move(meta)}})},
      {"ModelList", record({{"object", only("list")}, {"data", arrayOf(replySchema("Model"))}})},
      {"Text", record({{"content", string}})},
      {"Tokens", record({{"tokens", arrayOf(natural())}})},
      {"Usage", record({{"prompt_tokens", natural()},
                        {"completion_tokens", natural()},
                        {"total_tokens", natural()},
                        {"prompt_tokens_details", record({{"cached_tokens", natural()}})}})},
  };
}

Json exampleRequests(Endpoint endpoint, const ServedModel &model) {
  Json examples = Json::object();
  auto add = [&](const char *name, Json body, Json more = Json::object()) {
    body["max_tokens"] = 8;
    body.update(more);
    examples[name]["value"] = std::move(body);
  };
  const Json streamed = {{"stream", true}, {"stream_options", {{"include_usage", true}}}};
  const Json sampled = {{"temperature", 0.7},
                        {"top_p", 0.9},
                        {"top_k", 40},
                        {"min_p", 0.05},
                        {"seed", 7},
                        {"n", 2},
                        {"presence_penalty", 0.5},
                        {"frequency_penalty", 0.5},
                        {"repetition_penalty", 1.1}};
  if (endpoint == Endpoint::Completions) {
    const Json ids = {{"prompt", Json::array({0, 1})}};
    add("tokens", ids);
    add("sampling", ids, sampled);
    add("stream", ids, streamed);
    add("logprobs", ids, {{"logprobs", 2}});
    if (model.text) {
      add("text", {{"prompt", "Once upon a time"}}, {{"stop", "\n"}});
      add("list", {{"prompt", {"Once upon a time", "There was"}}});
    }
    return examples;
  }
  if (!model.chatTemplate)
    return examples;
  const Json hello = {
      {"messages", Json::array({{{"role", "user"}, {"content", "What is a compiler?"}}})}};
  add("message", hello);
  add("sampling", hello, sampled);
  add("stream", hello, streamed);
  add("logprobs", hello, {{"logprobs", true}, {"top_logprobs", 2}});
  if (model.answers.calls) {
    Json parameters = {{"type", "object"}, {"properties", {{"city", {{"type", "string"}}}}}};
    Json function = {{"name", "get_weather"}, {"parameters", std::move(parameters)}};
    add("tools", hello,
        {{"tools", Json::array({{{"type", "function"}, {"function", std::move(function)}}})}});
  }
  return examples;
}

} // namespace mica::rt::serve
