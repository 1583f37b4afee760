#include "backends/cpu/runtime/ChatTemplate.h"
#include "backends/cpu/runtime/NestedJson.h"
#include "backends/cpu/runtime/RunCommand.h"
#include "backends/cpu/runtime/tokenizer/Utf8.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mica::rt {

using Json = nlohmann::ordered_json;

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
  return ChatTemplate(*manifest.chat, *text, *std::move(program));
}

Result<std::string> ChatTemplate::render(const std::vector<Message> &messages, bool answer) const {
  Json list = Json::array();
  for (const Message &message : messages)
    list.push_back({{"role", message.role}, {"content", tokenizer::repairUtf8(message.content)}});
  Json context = {{"messages", std::move(list)},
                  {"tools", Json::parse(tools)},
                  {"documents", nullptr},
                  {"add_generation_prompt", answer}};
  for (const auto &[name, token] : chat.specialTokens)
    context[name] = token;
  Result<std::string> rendered = program.render(context);
  if (!rendered)
    return Error{"the chat template has failed (" + rendered.error().message +
                 "), change the conversation or continue a text with -p"};
  return rendered;
}

Status ChatTemplate::useTools(const std::string &path) {
  Result<std::string> file = readTextFile(path, "tools", "--tools");
  if (!file)
    return file.error();
  bool tooDeep;
  Json list = parseNested<Json>(*file, tooDeep);
  if (tooDeep)
    return Error{"the tools in '" + path + "' are nested more than " + std::to_string(mostNested) +
                 " deep, shorten them"};
  bool fits =
      list.is_array() && !list.empty() &&
      std::all_of(list.begin(), list.end(), [](const Json &tool) { return tool.is_object(); });
  if (!fits)
    return Error{"the tools in '" + path +
                 "' are no JSON list of objects, write [{\"type\": \"function\", \"function\": "
                 "{\"name\": ...}}]"};
  const std::vector<Message> question = {{"user", "A question"}};
  Result<std::string> without = render(question, true);
  tools = list.dump();
  Result<std::string> with = render(question, true);
  if (!with)
    return with.error();
  if (without && *with == *without)
    return Error{"the chat template has no place for tools, leave --tools out"};
  return {};
}

Result<Tokens> ChatTemplate::encode(const std::vector<Message> &messages, bool answer) const {
  Result<std::string> rendered = render(messages, answer);
  if (!rendered)
    return rendered.error();
  return text.encodeSpelt(*rendered);
}

Tokens ChatTemplate::endOfTurn() const {
  static constexpr std::string_view answer = "The answer";
  Result<std::string> rendered =
      render({{"user", "A question"}, {"assistant", std::string(answer)}}, false);
  size_t place = rendered ? rendered->rfind(answer) : std::string::npos;
  if (place == std::string::npos)
    return {};
  std::string rest = rendered->substr(place + answer.size());
  rest.erase(0, std::min(rest.find_first_not_of(" \n"), rest.size()));
  Result<Tokens> ids = text.encodeSpelt(rest);
  if (!ids || ids->empty() || !text.isSpecial(ids->front()))
    return {};
  return {ids->front()};
}

} // namespace mica::rt
