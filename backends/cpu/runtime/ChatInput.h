// Where the turns of a conversation come from.
#pragma once

#include "backends/cpu/runtime/Result.h"

#include <memory>
#include <optional>
#include <string>

namespace mica::rt {

class ChatInput {
public:
  virtual ~ChatInput() = default;
  /// The next turn; nothing at the end of the input. Errors: input that cannot be read.
  virtual Result<std::optional<std::string>> read() = 0;
  /// Whether somebody sits there.
  virtual bool interactive() const = 0;
};

/// With line editing and history where stdin is a terminal, else line by line. `history`: the file
/// that keeps what is said on a terminal.
std::unique_ptr<ChatInput> openChatInput(const std::optional<std::string> &history);

/// Interrupts by Ctrl-C since the last call; from the first call on they no longer end the program.
bool takeInterrupt();

} // namespace mica::rt
