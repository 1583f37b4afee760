#include "backends/runtime/commands/BatchRequests.h"
#include "backends/runtime/engine/Request.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/support/TextFile.h"
#include "backends/runtime/text/ChatTemplate.h"
#include "backends/runtime/text/base/Utf8.h"

#include <nlohmann/json.hpp>

namespace mica::rt {

namespace {
using Json = nlohmann::ordered_json;

constexpr int64_t maxTexts = 1'000'000;

/// Thrown within RequestReader; caught in BatchRequests::next.
struct Bad {
  std::string message;
};

int64_t wholeNumber(const Json &value, const std::string &key, int64_t min, int64_t max) {
  std::optional<int64_t> number = wholeNumberWithin(value, min, max);
  if (!number)
    throw Bad{"\"" + key + "\" is not a whole number from " + std::to_string(min) + " to " +
              std::to_string(max)};
  return *number;
}

uint64_t seedOf(const Json &value) {
  std::optional<uint64_t> seed = unsignedNumber(value);
  if (!seed)
    throw Bad{"\"seed\" is not a whole number from 0 to 18446744073709551615"};
  return *seed;
}

/// Reads requests for one program.
class RequestReader {
public:
  RequestReader(const ProgramTokenizer *tokenizer, const Manifest &manifest,
                const RunArguments &arguments)
      : tokenizer(tokenizer), manifest(manifest), arguments(arguments) {}

  BatchRequest read(const Json &json);

private:
  Tokens idsOf(const Json &ids) const;
  Tokens textOf(const Json &text) const;
  /// The tokens of `messages` with the tools of a request (null: none), and the tokens that end an
  /// answer.
  Tokens conversationOf(const Json &messages, const Json *tools, Tokens &endTokens);
  /// A prompt as one turn of the user.
  Json turnOf(const Json &prompt) const;
  void loadTemplate();

  const ProgramTokenizer *tokenizer;
  const Manifest &manifest;
  const RunArguments &arguments;
  std::optional<ChatTemplate> chatTemplate;
};

Tokens RequestReader::idsOf(const Json &ids) const {
  Tokens tokens;
  if (!ids.is_array())
    throw Bad{"\"tokens\" is not an array of ids"};
  for (const Json &id : ids)
    tokens.push_back(static_cast<int32_t>(wholeNumber(id, "tokens", 0, manifest.vocab - 1)));
  return tokens;
}

template <typename T> T orThrow(Result<T> result) {
  if (!result)
    throw Bad{result.error().message};
  return *std::move(result);
}

void requireString(const Json &prompt) {
  if (!prompt.is_string())
    throw Bad{"\"prompt\" is not a string"};
}

Tokens RequestReader::textOf(const Json &text) const {
  requireString(text);
  if (!tokenizer)
    throw Bad{std::string(noTokenizer) + "as \"tokens\""};
  return orThrow(tokenizer->encode(text.get<std::string>()));
}

void RequestReader::loadTemplate() {
  if (chatTemplate)
    return;
  chatTemplate.emplace(orThrow(ChatTemplate::load(manifest, tokenizer, arguments.chatTemplate)));
}

Tokens RequestReader::conversationOf(const Json &messages, const Json *tools, Tokens &endTokens) {
  loadTemplate();
  ChatTemplate used = tools ? orThrow(chatTemplate->withTools(*tools)) : *chatTemplate;
  endTokens = used.endOfTurn();
  return orThrow(used.encodeJson(messages)).tokens;
}

Json RequestReader::turnOf(const Json &prompt) const {
  Json messages = Json::array();
  if (arguments.system)
    messages.push_back({{"role", "system"}, {"content", tokenizer::repairUtf8(*arguments.system)}});
  requireString(prompt);
  messages.push_back({{"role", "user"}, {"content", prompt}});
  return messages;
}

BatchRequest RequestReader::read(const Json &json) {
  if (!json.is_object())
    throw Bad{"a JSON object is expected"};
  BatchRequest request;
  int prompts = 0;
  for (const auto &[key, value] : json.items()) {
    if (key == "id")
      request.id = value.dump();
    else if (key == "n")
      request.count = wholeNumber(value, key, 1, maxTexts);
    else if (key == "seed")
      request.settings.seed = seedOf(value);
    else if (key == "max_tokens")
      request.settings.maxTokens =
          wholeNumber(value, key, setting_range::maxTokens.min, setting_range::maxTokens.max);
    else if (key == "prompt" || key == "tokens" || key == "messages")
      ++prompts;
    else if (key != "tools")
      throw Bad{"the key \"" + key +
                "\" is unknown; write prompt, tokens, messages, tools, id, n, seed or "
                "max_tokens"};
  }
  if (prompts != 1)
    throw Bad{"one of \"prompt\", \"tokens\" and \"messages\" is expected"};
  auto find = [&](const char *key) { return json.contains(key) ? &json[key] : nullptr; };
  const Json *tools = find("tools"), *text = find("prompt"), *messages = find("messages");
  if (tools && !messages && !(text && arguments.chat))
    throw Bad{"\"tools\" need \"messages\", or \"prompt\" with --chat"};
  if (messages && arguments.system)
    throw Bad{"--system needs \"prompt\"; write a message with the role \"system\" instead"};
  if (const Json *ids = find("tokens"))
    request.prompt = idsOf(*ids);
  else if (text && !arguments.chat)
    request.prompt = textOf(*text);
  else
    request.prompt =
        conversationOf(messages ? *messages : turnOf(*text), tools, request.settings.endTokens);
  if (Status fits = checkPrompt(manifest, request.prompt); !fits)
    throw Bad{fits.error().message};
  return request;
}
} // namespace

struct BatchRequests::State {
  std::unique_ptr<TextLines> lines;
  RequestReader reader;
  int64_t line = 0; ///< of the last one read
};

BatchRequests::BatchRequests(std::unique_ptr<State> state) : state(std::move(state)) {}
BatchRequests::~BatchRequests() = default;

Result<std::unique_ptr<BatchRequests>> BatchRequests::open(const ProgramTokenizer *tokenizer,
                                                           const Manifest &manifest,
                                                           const RunArguments &arguments) {
  auto lines = TextLines::open(*arguments.file, "requests", "-f");
  if (!lines)
    return lines.error();
  std::unique_ptr<State> state(
      new State{*std::move(lines), RequestReader(tokenizer, manifest, arguments)});
  return std::unique_ptr<BatchRequests>(new BatchRequests(std::move(state)));
}

BatchRequests::Place BatchRequests::place() const { return {state->lines->place(), state->line}; }

void BatchRequests::goTo(Place place) {
  state->lines->goTo(place.bytes);
  state->line = place.lines;
}

Result<std::shared_ptr<const BatchRequest>> BatchRequests::next() {
  for (;;) {
    Result<std::string_view> row = state->lines->next();
    if (!row)
      return row.error();
    if (row->empty())
      return std::shared_ptr<const BatchRequest>();
    ++state->line;
    if (row->find_first_not_of(" \t\r\n") == row->npos)
      continue;
    try {
      std::string problem;
      Json json = parseNested(*row, problem);
      if (json.is_discarded())
        throw Bad{problem};
      auto request = std::make_shared<BatchRequest>(state->reader.read(json));
      request->line = state->line;
      return std::shared_ptr<const BatchRequest>(std::move(request));
    } catch (const Bad &bad) {
      return Error{"line " + std::to_string(state->line) + " of the requests: " + bad.message};
    }
  }
}

} // namespace mica::rt
