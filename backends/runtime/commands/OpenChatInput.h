// Where the turns of a conversation come from: a terminal or a pipe.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_OPENCHATINPUT_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_OPENCHATINPUT_H

#include "backends/runtime/commands/ChatInput.h"

namespace mica::rt {

/// With line editing and history where stdin is a terminal, else from what stdin is. `history`: the
/// file that keeps what is said on a terminal.
std::unique_ptr<ChatInput> openChatInput(const std::optional<std::string> &history);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_OPENCHATINPUT_H
