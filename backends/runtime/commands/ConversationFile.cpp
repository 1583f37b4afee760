#include "backends/runtime/commands/ConversationFile.h"
#include "backends/runtime/support/NestedJson.h"
#include "backends/runtime/support/NewFile.h"
#include "backends/runtime/support/Output.h"
#include "backends/runtime/support/TextFile.h"

namespace mica::rt {

using Json = nlohmann::ordered_json;

Status saveConversation(const std::string &path, const std::vector<Message> &messages) {
  Json list = Json::array();
  for (const Message &message : messages)
    list.push_back({{"role", message.role}, {"content", message.content}});
  Json whole = {{"messages", std::move(list)}};
  std::string text = toJsonText(whole) + "\n";
  Result<std::unique_ptr<NewFile>> file =
      NewFile::create(path, {"the conversation", "saved conversation", "{\"messages\":"});
  if (!file)
    return file.error();
  if (Status written = (*file)->writeAt(text.data(), text.size(), 0); !written)
    return written;
  return (*file)->commit();
}

Result<std::vector<Message>> loadConversation(const std::string &path) {
  Result<std::string> text = readTextFile(path, "conversation", "/load");
  if (!text)
    return text.error();
  std::string problem;
  Json json = parseNested(*text, problem);
  if (!problem.empty())
    return Error{"the conversation in '" + path + "': " + problem};
  if (json.is_object() && json.contains("messages"))
    json = Json(json["messages"]);
  std::vector<Message> messages;
  bool good = json.is_array();
  for (size_t i = 0; good && i < json.size(); ++i) {
    auto textOf = [&](const char *key) {
      bool isText = json[i].is_object() && json[i].contains(key) && json[i][key].is_string();
      good = good && isText;
      return isText ? json[i][key].get<std::string>() : std::string();
    };
    messages.push_back({textOf("role"), textOf("content")});
  }
  if (!good)
    return Error{"the conversation in '" + path +
                 "' is not a list of messages; write {\"messages\": [{\"role\": \"user\", "
                 "\"content\": \"Hello\"}]}"};
  return messages;
}

} // namespace mica::rt
