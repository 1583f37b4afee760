// The source of a conversation's turns.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_CHATINPUT_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_CHATINPUT_H

#include "backends/runtime/support/Result.h"

#include <memory>
#include <optional>
#include <string>

namespace mica::rt {

/// Longer turns exceed every context.
inline constexpr size_t maxTurnBytes = size_t(1) << 28;

class ChatInput {
public:
  virtual ~ChatInput() = default;
  /// The next turn; nothing at the end of the input. A turn is one line, several lines of which all
  /// but the last end in a backslash, or the text between two lines of three double quotes. Errors:
  /// input that cannot be read or that ends within a turn.
  Result<std::optional<std::string>> read();
  /// Whether the input is interactive.
  virtual bool interactive() const = 0;

protected:
  struct Line {
    enum Kind {
      Whole,
      Abandoned, ///< together with the preceding lines of its turn
      EndOfInput
    } kind;
    std::string text = {}; ///< of a complete line, without its newline
  };
  /// The next line. `continued`: it is not the first one of its turn.
  virtual Result<Line> readLine(bool continued) = 0;
  virtual void remember(const std::string & /*turn*/) {}

private:
  /// The rest of the turn that begins with `text`; nothing if the turn is abandoned.
  Result<std::optional<std::string>> readTurn(std::string text);
};

/// Ctrl-C no longer ends the program after this call.
void catchInterrupts();
/// Whether Ctrl-C was pressed since the last call.
bool takeInterrupt();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_CHATINPUT_H
