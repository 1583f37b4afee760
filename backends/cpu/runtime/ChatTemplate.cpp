#include "backends/cpu/runtime/ChatTemplate.h"
#include "backends/cpu/runtime/NestedJson.h"
#include "backends/cpu/runtime/TextFile.h"
#include "backends/cpu/runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mica::rt {

using Json = nlohmann::ordered_json;

namespace {
constexpr const char *noTools = "are no JSON list of objects, write [{\"type\": \"function\", "
                                "\"function\": {\"name\": ...}}]";

bool isListOfObjects(const Json &list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const Json &each) { return each.is_object(); });
}
} // namespace

Result<ChatTemplate> ChatTemplate::load(const Manifest &manifest, const Text *text) {
  if (!manifest.chat)
    return Error{"the model has no chat template, continue a text with -p instead"};
  if (!text)
    return Error{
        "the program has no tokenizer, which a conversation needs; give ids with --tokens"};
  Result<jinja::Template> program = jinja::Template::parse(manifest.chat->chatTemplate);
  if (!program)
    return Error{"the chat template cannot be run (" + program.error().message +
                 "), continue a text with -p instead"};
  std::optional<Result<jinja::Template>> toolProgram;
  if (manifest.chat->toolTemplate)
    toolProgram.emplace(jinja::Template::parse(*manifest.chat->toolTemplate));
  return ChatTemplate(*manifest.chat, *text, *std::move(program), std::move(toolProgram));
}

Result<std::string> ChatTemplate::render(const std::vector<Message> &messages, bool answer) const {
  Json list = Json::array();
  for (const Message &message : messages)
    list.push_back({{"role", message.role}, {"content", tokenizer::repairUtf8(message.content)}});
  return renderJson(list.dump(), answer);
}

Result<std::string> ChatTemplate::renderBy(const jinja::Template &used, const std::string &messages,
                                           const std::string &tools, bool answer) const {
  Json context = {{"messages", Json::parse(messages)},
                  {"tools", Json::parse(tools)},
                  {"documents", nullptr},
                  {"add_generation_prompt", answer}};
  for (const auto &[name, token] : chat.specialTokens)
    context[name] = token;
  Result<std::string> rendered = used.render(context);
  if (!rendered)
    return Error{"the chat template has failed (" + rendered.error().message +
                 "), change the conversation or continue a text with -p"};
  return rendered;
}

Status ChatTemplate::useTools(const std::string &path) {
  Result<std::string> file = readTextFile(path, "tools", "--tools");
  if (!file)
    return file.error();
  std::string problem;
  Json list = parseNested<Json>(*file, problem);
  if (!problem.empty())
    return Error{"the tools in '" + path + "': " + problem};
  if (!isListOfObjects(list))
    return Error{"the tools in '" + path + "' " + noTools};
  Status set = setTools(list.dump());
  shared = tools;
  return set;
}

Status ChatTemplate::setTools(const std::string &list) {
  Json parsed = Json::parse(list);
  if (!isListOfObjects(parsed))
    return Error{std::string("\"tools\" ") + noTools};
  if (toolProgram && !*toolProgram)
    return Error{"the chat template for tools cannot be run (" + toolProgram->error().message +
                 "), leave them out"};
  const jinja::Template &used = toolProgram ? **toolProgram : program;
  const char *question = R"([{"role": "user", "content": "A question"}])";
  Result<std::string> with = renderBy(used, question, list, true);
  if (!with)
    return with.error();
  Result<std::string> without = renderBy(used, question, "null", true);
  if (without && *with == *without)
    return Error{"the chat template has no place for tools, leave them out"};
  tools = parsed.dump();
  return {};
}

Result<Tokens> ChatTemplate::encode(const std::vector<Message> &messages, bool answer) const {
  Result<std::string> rendered = render(messages, answer);
  if (!rendered)
    return rendered.error();
  return text.encodeSpelt(*rendered);
}

Result<Tokens> ChatTemplate::encodeJson(const std::string &messages) const {
  Json list = Json::parse(messages);
  bool haveRoles = isListOfObjects(list);
  for (const Json &message : list)
    haveRoles = haveRoles && message.contains("role") && message["role"].is_string();
  if (!haveRoles)
    return Error{"\"messages\" is no list of objects with a role each, write [{\"role\": \"user\", "
                 "\"content\": \"Hello\"}]"};
  Result<std::string> rendered = renderJson(messages, true);
  if (!rendered)
    return rendered.error();
  return text.encodeSpelt(*rendered);
}

Result<Tokens> ChatTemplate::endOfTurn() const {
  static constexpr std::string_view answer = "The answer";
  std::vector<Message> turns = {{"user", "A question"}, {"assistant", std::string(answer)}};
  Result<std::string> rendered = render(turns, false);
  if (!rendered) { // some want the last word to be the user's
    turns.push_back({"user", "A question"});
    if (Result<std::string> longer = render(turns, true))
      rendered = std::move(longer);
  }
  if (!rendered)
    return rendered.error();
  size_t place = rendered->rfind(answer);
  if (place == std::string::npos)
    return Tokens();
  std::string rest = rendered->substr(place + answer.size());
  rest.erase(0, std::min(rest.find_first_not_of(" \n"), rest.size()));
  Result<Tokens> ids = text.encodeSpelt(rest);
  if (ids)
    ids->resize(!ids->empty() && text.isSpecial(ids->front()) ? 1 : 0);
  return ids;
}

} // namespace mica::rt
