#include "backends/runtime/text/ChatTemplate.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/support/TextFile.h"
#include "backends/runtime/text/DetectAnswerFormat.h"
#include "backends/runtime/text/base/Utf8.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace mica::rt {

using Json = nlohmann::ordered_json;

namespace {
constexpr const char *noTools = "are not a JSON list of objects; write [{\"type\": \"function\", "
                                "\"function\": {\"name\": ...}}]";

bool isListOfObjects(const Json &list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), [](const Json &each) { return each.is_object(); });
}
} // namespace

Result<Manifest> withChatTemplate(const Manifest &manifest,
                                  const std::optional<std::string> &file) {
  Manifest changed = manifest;
  if (!file)
    return changed;
  Result<std::string> text = readTextFile(*file, "chat template", "--chat-template");
  if (!text)
    return text.error();
  if (!changed.chat)
    changed.chat.emplace();
  changed.chat->chatTemplate = *std::move(text);
  changed.chat->toolTemplate.reset();
  return changed;
}

Result<ChatTemplate> ChatTemplate::load(const Manifest &manifest, const ProgramTokenizer *text,
                                        const Options &options) {
  // Programs without a tokenizer have no template, even if the model has one.
  if (!text)
    return Error{std::string(noTokenizer) + "with --tokens"};
  if (!manifest.chat)
    return Error{"the model has no chat template; continue a text with -p instead"};
  const Manifest::Chat &chat = *manifest.chat;
  Result<jinja::Template> program = jinja::Template::parse(chat.chatTemplate);
  if (!program)
    return Error{"the chat template cannot be run (" + program.error().message +
                 "); continue a text with -p instead"};
  ChatTemplate loaded(chat, *text, std::make_shared<jinja::Template>(*std::move(program)));
  if (chat.toolTemplate) {
    if (auto parsed = jinja::Template::parse(*chat.toolTemplate))
      loaded.toolProgram.emplace(std::make_shared<jinja::Template>(*std::move(parsed)));
    else
      loaded.toolProgram.emplace(parsed.error());
  }
  loaded.special = options.special;
  if (options.tools)
    if (Status used = loaded.useTools(*options.tools); !used)
      return used.error();
  if (Status found = loaded.findEndOfTurn(); !found)
    return found.error();
  return loaded;
}

Result<ChatTemplate> ChatTemplate::withTools(Json list) const {
  ChatTemplate changed = *this;
  if (Status set = changed.setTools(std::move(list)); !set)
    return set.error();
  if (changed.hasToolTemplate() != hasToolTemplate())
    if (Status found = changed.findEndOfTurn(); !found)
      return found.error();
  return changed;
}

ChatTemplate::Rendered ChatTemplate::render(const std::vector<Message> &messages,
                                            bool answer) const {
  Json list = Json::array();
  for (const Message &message : messages)
    list.push_back({{"role", message.role}, {"content", tokenizer::repairUtf8(message.content)}});
  return renderList(list, answer);
}

ChatTemplate::Rendered ChatTemplate::renderList(const Json &messages, bool answer) const {
  return renderBy(hasToolTemplate() ? **toolProgram.value() : *program, messages,
                  tools ? *tools : Json(), answer);
}

ChatTemplate::Rendered ChatTemplate::renderBy(const jinja::Template &used, const Json &messages,
                                              const Json &tools, bool answer) const {
  Json conversation = {{"messages", messages}, {"tools", tools}};
  Json own = {{"documents", nullptr}, {"add_generation_prompt", answer}};
  for (const auto &[name, token] : chat.specialTokens)
    own[name] = token;
  Rendered rendered = used.render(own, conversation);
  if (!rendered)
    return Error{"the chat template has failed (" + rendered.error().message +
                 "); change the conversation"};
  return rendered;
}

Status ChatTemplate::useTools(const std::string &path) {
  Result<std::string> file = readTextFile(path, "tools", "--tools");
  if (!file)
    return file.error();
  std::string problem;
  Json list = parseNested(*file, problem);
  if (!problem.empty())
    return Error{"the tools in '" + path + "': " + problem};
  if (!isListOfObjects(list))
    return Error{"the tools in '" + path + "' " + noTools};
  return setTools(std::move(list));
}

Status ChatTemplate::setTools(Json list) {
  if (!isListOfObjects(list))
    return Error{std::string("\"tools\" ") + noTools};
  if (toolProgram && !*toolProgram)
    return Error{"the chat template for tools cannot be run (" + toolProgram->error().message +
                 "); leave them out"};
  const jinja::Template &used = toolProgram ? **toolProgram.value() : *program;
  const Json question = Json::array({{{"role", "user"}, {"content", "A question"}}});
  Rendered with = renderBy(used, question, list, true);
  if (!with)
    return with.error();
  Rendered without = renderBy(used, question, Json(), true);
  if (without && with->bytes == without->bytes)
    return Error{"the chat template does not support tools; leave them out"};
  tools = std::make_shared<const Json>(std::move(list));
  return {};
}

Result<Tokens> ChatTemplate::idsOf(const Rendered &rendered, size_t maxTokens) const {
  if (!rendered)
    return rendered.error();
  return text->encodeWithSpecialTokens(rendered->bytes,
                                       special ? ByteRanges() : rendered->untrusted, maxTokens);
}

Result<Tokens> ChatTemplate::encode(const std::vector<Message> &messages, bool answer) const {
  return idsOf(render(messages, answer));
}

Result<ChatTemplate::Prompt> ChatTemplate::encodeJson(const Json &messages,
                                                      size_t maxTokens) const {
  bool haveRoles = isListOfObjects(messages);
  for (const Json &message : messages)
    haveRoles = haveRoles && message.contains("role") && message["role"].is_string();
  if (!haveRoles)
    return Error{
        "\"messages\" is not a list of objects with a role each; write [{\"role\": \"user\", "
        "\"content\": \"Hello\"}]"};
  Rendered rendered = renderList(messages, true);
  Result<Tokens> ids = idsOf(rendered, maxTokens);
  if (!ids)
    return ids.error();
  return Prompt{*std::move(ids), std::move(rendered->bytes)};
}

Result<std::string> ChatTemplate::renderJson(const Json &messages) const {
  Rendered rendered = renderList(messages, true);
  if (!rendered)
    return rendered.error();
  return std::move(rendered->bytes);
}

AnswerFormat ChatTemplate::answerFormat() const {
  bool own = toolProgram && *toolProgram;
  return detectAnswerFormat(
      own ? *chat.toolTemplate : chat.chatTemplate,
      [&](const Json &messages, const Json &known, bool answer) -> std::optional<std::string> {
        Rendered rendered =
            renderBy(own ? **toolProgram.value() : *program, messages, known, answer);
        if (!rendered)
          return std::nullopt;
        return std::move(rendered->bytes);
      });
}

Status ChatTemplate::findEndOfTurn() {
  static constexpr std::string_view answer = "The answer";
  std::vector<Message> turns = {{"user", "A question"}, {"assistant", std::string(answer)}};
  Rendered rendered = render(turns, false);
  if (!rendered) { // some templates require that the last message is the user's
    turns.push_back({"user", "A question"});
    if (Rendered longer = render(turns, true))
      rendered = std::move(longer);
  }
  if (!rendered)
    return rendered.error();
  size_t place = rendered->bytes.rfind(answer);
  end.clear();
  if (place == std::string::npos)
    return {};
  std::string rest = rendered->bytes.substr(place + answer.size());
  rest.erase(0, std::min(rest.find_first_not_of(" \n"), rest.size()));
  Result<Tokens> ids = text->encodeWithSpecialTokens(rest);
  if (!ids)
    return ids.error();
  if (!ids->empty() && text->isSpecial(ids->front()))
    end = {ids->front()};
  return {};
}

} // namespace mica::rt
