// The file format of conversations, written by /save and read by /load.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATIONFILE_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATIONFILE_H

#include "backends/runtime/text/ChatTemplate.h"

namespace mica::rt {

/// Writes {"messages": [{"role": "user", "content": "Hello"}, ...]}. Errors: the file cannot be
/// written, or contains something other than a conversation.
Status saveConversation(const std::string &path, const std::vector<Message> &messages);

/// Reads a file written by saveConversation, or a bare list of messages. Errors: the file cannot be
/// read, or is not such JSON.
Result<std::vector<Message>> loadConversation(const std::string &path);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_CONVERSATIONFILE_H
