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
  /// The next turn; nothing at the end of the input. A turn is a line, or several of them: those of
  /// which all but the last end in a backslash, and what stands between two marks of three double
  /// quotes. Errors: input that cannot be read.
  Result<std::optional<std::string>> read();
  /// Whether somebody sits there.
  virtual bool interactive() const = 0;

protected:
  /// The next line, without its end; nothing at the end of the input. `continued`: it is not the
  /// first of its turn.
  virtual Result<std::optional<std::string>> readLine(bool continued) = 0;
  virtual void remember(const std::string & /*turn*/) {}
};

/// With line editing and history where stdin is a terminal, else from what stdin is. `history`: the
/// file that keeps what is said on a terminal.
std::unique_ptr<ChatInput> openChatInput(const std::optional<std::string> &history);

/// Interrupts by Ctrl-C since the last call; from the first call on they no longer end the program.
bool takeInterrupt();

} // namespace mica::rt
