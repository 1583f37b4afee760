#include "backends/runtime/serve/MessageReader.h"
#include "backends/runtime/support/NestedJson.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace mica::rt::serve {

constexpr size_t maxFunctionName = 64;

static bool isFunctionName(const std::string &name) {
  auto isAllowed = [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || c == '_' || c == '-' || c == '.');
  };
  return !name.empty() && name.size() <= maxFunctionName &&
         std::all_of(name.begin(), name.end(), isAllowed);
}

/// A string, or the concatenation of text parts.
std::string MessageReader::content(const Json &value) const {
  if (value.is_string())
    return value.get<std::string>();
  if (!value.is_array())
    fail("the \"content\" of a message is neither a string nor an array of parts");
  std::string text;
  for (const Json &part : value) {
    if (!part.is_object() || numEntries(part) != 2 || part.value("type", Json()) != "text" ||
        !part.contains("text") || !part["text"].is_string())
      fail("a part of a message's \"content\" is not {\"type\": \"text\", \"text\": ...}");
    text += part["text"].get<std::string>();
  }
  return text;
}

/// A call of an earlier turn. Templates expect arguments as an object.
Json MessageReader::toolCall(const Json &value) {
  auto isString = [](const Json &object, const char *key) {
    return object.contains(key) && object[key].is_string();
  };
  bool isValid = value.is_object() && numEntries(value) == 3 &&
                 value.value("type", Json()) == "function" && isString(value, "id") &&
                 value.contains("function") && value["function"].is_object() &&
                 numEntries(value["function"]) == 2;
  isValid =
      isValid && isString(value["function"], "name") && isString(value["function"], "arguments");
  if (!isValid)
    fail("a call in \"tool_calls\" is not {\"id\": ..., \"type\": \"function\", \"function\": "
         "{\"name\": ..., \"arguments\": ...}}");
  std::string problem;
  const auto &text = value["function"]["arguments"].get_ref<const std::string &>();
  Json arguments = parseNested(text, problem);
  if (!arguments.is_object())
    fail("the \"arguments\" of a call in \"tool_calls\" are not the text of a JSON object");
  calledIds.insert(value["id"].get<std::string>());
  return {{"id", value["id"]},
          {"type", "function"},
          {"function", {{"name", value["function"]["name"]}, {"arguments", std::move(arguments)}}}};
}

/// A message in the format of templates.
Json MessageReader::message(const Json &value) {
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
        fail("the chat template does not support reasoning; leave \"reasoning_content\" out");
      message[key] = entry;
    } else {
      fail("the \"" + key + "\" of a message of the role \"" + role +
           "\" is not supported; leave it out");
    }
  }
  if (!hasContent && !hasCalls)
    fail("a message of the role \"" + role + "\" has no \"content\"");
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

void MessageReader::readMessages(const Json &value) {
  field = "messages";
  if (!value.is_array() || value.empty())
    failType("an array of messages");
  if (!model.chatTemplate)
    fail("the program has no chat template; use /v1/completions");
  if (auto positions = static_cast<size_t>(model.manifest.maxSeq); value.size() > positions)
    throw BadRequest{{.message = "'messages' has " + std::to_string(value.size()) +
                                 " messages, more than the context of " +
                                 std::to_string(positions) + " positions has room for",
                      .param = field,
                      .code = "context_length_exceeded"}};
  for (const Json &each : value) {
    requireNotStopped();
    messages.push_back(message(each));
  }
}

void MessageReader::readTools(const Json &value) {
  field = "tools";
  if (!value.is_array() || value.size() > maxTools)
    failType("an array of at most 128 tools");
  std::set<std::string> names;
  for (const Json &tool : value) {
    bool isValid = tool.is_object() && tool.value("type", Json()) == "function" &&
                   numEntries(tool) == 2 && tool.contains("function") &&
                   tool["function"].is_object() && tool["function"].contains("name") &&
                   tool["function"]["name"].is_string();
    if (!isValid)
      fail("an element of 'tools' is not {\"type\": \"function\", \"function\": {\"name\": ...}}");
    Json function = Json::object();
    for (const auto &[key, entry] : tool["function"].items()) {
      if (entry.is_null() || (key == "strict" && entry == false))
        continue;
      const char *problem = nullptr;
      if (key == "name" && !isFunctionName(entry.get<std::string>()))
        problem = "invalid; use up to 64 letters, digits, dots, dashes and underscores";
      else if (key == "description" && !entry.is_string())
        problem = "not a string";
      else if (key == "parameters" && !entry.is_object())
        problem = "not an object";
      else if (key == "strict" && !entry.is_boolean())
        problem = "not a boolean";
      else if (key != "name" && key != "description" && key != "parameters")
        problem = "not supported; leave it out";
      if (problem)
        fail("the \"" + key + "\" of a function in 'tools' is " + problem);
      function[key] = entry;
    }
    if (!names.insert(function["name"].get<std::string>()).second)
      fail("two functions in 'tools' have the same \"name\"");
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  request.tools = {names.begin(), names.end()};
}

void MessageReader::readToolChoice(const Json &value) {
  field = "tool_choice";
  if (value != "none" && value != "auto")
    fail("only a 'tool_choice' of \"auto\" or \"none\" is supported");
  usesTools = value == "auto";
}

/// The strings of a message that templates must not ignore, with a description for each.
std::vector<std::pair<std::string, Json *>> MessageReader::readValues(Json &message) const {
  std::vector<std::pair<std::string, Json *>> values;
  // Many templates leave out the content of a message with calls, which is mostly empty.
  bool hasCalls = message.contains("tool_calls");
  bool callsAreContent = model.answers.calls && model.answers.calls->asContent;
  if (!hasCalls || callsAreContent)
    values.emplace_back("a message", &message["content"]);
  if (message.contains("name"))
    values.emplace_back("the \"name\" of a message", &message["name"]);
  if (hasCalls && !callsAreContent)
    for (Json &call : message["tool_calls"])
      values.emplace_back("the \"tool_calls\" of a message", &call["function"]["name"]);
  return values;
}

/// Which of the marks, `prefix` with a number below `count` and "q" after it, are in `text`.
static std::vector<bool> findMarks(const std::string &text, const std::string &prefix,
                                   size_t count) {
  std::vector<bool> found(count);
  for (size_t at = text.find(prefix); at != text.npos; at = text.find(prefix, at)) {
    at += prefix.size();
    size_t number = count;
    const char *end = std::from_chars(text.data() + at, text.data() + text.size(), number).ptr;
    if (number < count && *end == 'q')
      found[number] = true;
  }
  return found;
}

/// Rejects values that the template ignores, which many templates do if they do not support them.
/// Each value gets a mark, which must be in the text. For values that are not found, changing only
/// this value must change the text.
void MessageReader::requireAllRead(const ChatTemplate &chat, const std::string &text) const {
  // A random number is not in the messages.
  const std::string prefix = "q" + std::to_string(drawSeed() >> 32) + "z";
  auto addMark = [&](Json &value, size_t number) {
    value = value.get<std::string>() + prefix + std::to_string(number) + "q";
  };
  Json marked = messages;
  size_t count = 0;
  for (Json &message : marked)
    for (auto &[what, value] : readValues(message))
      addMark(*value, count++);
  requireNotStopped();
  Result<std::string> all = chat.renderJson(marked);
  std::vector<bool> found = findMarks(all ? *all : std::string(), prefix, count);
  // Each rendering takes as long as the first one; templates that use values without writing them
  // need several.
  constexpr int maxRenderings = 16;
  int renderings = 0;
  size_t number = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    for (size_t j = 0, values = readValues(marked[i]).size(); j < values; ++j, ++number) {
      if (found[number] || renderings == maxRenderings)
        continue;
      requireNotStopped();
      Json others = messages;
      auto [what, value] = readValues(others[i])[j];
      addMark(*value, number);
      Result<std::string> other = chat.renderJson(others);
      ++renderings;
      if (other && *other == text)
        fail("the chat template ignores " + what + " of the role " + messages[i]["role"].dump() +
             " (number " + std::to_string(i + 1) + ")");
    }
  }
}

void MessageReader::encode() {
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
    Result<ChatTemplate> changed = model.chatTemplate->withTools(tools);
    if (!changed)
      fail(changed.error().message);
    withTools.emplace(*std::move(changed));
  }
  const ChatTemplate &used = withTools ? *withTools : *model.chatTemplate;
  field = "messages";
  requireNotStopped();
  Result<ChatTemplate::Prompt> prompt = used.encodeJson(messages, maxEncodedTokens(model.manifest));
  if (!prompt)
    fail(prompt.error().message);
  requireFits(prompt->tokens, model.manifest, /*isText=*/true);
  requireAllRead(used, prompt->text);
  request.prompts = {std::move(prompt->tokens)};
  request.settings.endTokens = used.endOfTurn();
  if (model.answers.reasoning) {
    std::string_view text = prompt->text;
    text = text.substr(0, text.find_last_not_of(" \n") + 1);
    request.startsInReasoning = text.ends_with(model.answers.reasoning->begin);
  }
}

} // namespace mica::rt::serve
