// Reads the messages and tools of a chat.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_MESSAGEREADER_H
#define MICA_BACKENDS_RUNTIME_SERVE_MESSAGEREADER_H

#include "backends/runtime/serve/CompletionRequest.h"
#include "backends/runtime/serve/FieldReader.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

namespace mica::rt::serve {

/// Converts messages and tools to the format of chat templates, and encodes them.
class MessageReader : FieldReader {
public:
  /// The prompt and the names of tools are stored in `request`. If `stop` is requested, functions
  /// throw an error without a meaning.
  MessageReader(const ServedModel &model, CompletionRequest &request, const std::stop_token &stop)
      : FieldReader(stop), model(model), request(request) {}

  void readMessages(const Json &value);
  void readTools(const Json &value);
  void readToolChoice(const Json &value);
  /// Encodes the messages, in time proportional to their size; called when all fields have been
  /// read.
  void encode();
  bool hasTools() const { return !tools.empty(); }

private:
  std::string content(const Json &value) const;
  Json message(const Json &value);
  Json toolCall(const Json &value);
  std::vector<std::pair<std::string, Json *>> readValues(Json &message) const;
  void requireAllRead(const ChatTemplate &chat, const std::string &text) const;

  const ServedModel &model;
  CompletionRequest &request;
  Json messages = Json::array(); ///< in the format of the template
  Json tools = Json::array();
  bool usesTools = true;           ///< `tool_choice`
  std::set<std::string> calledIds; ///< ids of calls in the messages so far
};

/// The maximum number of tools of a request.
inline constexpr size_t maxTools = 128;

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_MESSAGEREADER_H
