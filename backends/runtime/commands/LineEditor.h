// A terminal with line editing and history, by libedit.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_LINEEDITOR_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_LINEEDITOR_H

#include "backends/runtime/commands/ChatInput.h"

namespace mica::rt {

/// Stdin must be a terminal. The history is kept in memory, and in the file `history` if there is
/// one; failures to read or write it are notes.
std::unique_ptr<ChatInput> openLineEditor(const std::optional<std::string> &history);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_LINEEDITOR_H
