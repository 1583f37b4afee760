// Opens the source of a conversation's turns: a terminal or a pipe.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_OPENCHATINPUT_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_OPENCHATINPUT_H

#include "backends/runtime/commands/ChatInput.h"

namespace mica::rt {

/// With line editing and history if stdin is a terminal.
/// `history`: the file for turns entered on a terminal.
std::unique_ptr<ChatInput> openChatInput(const std::optional<std::string> &history);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_OPENCHATINPUT_H
