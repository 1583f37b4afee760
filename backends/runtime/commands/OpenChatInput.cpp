#include "backends/runtime/commands/OpenChatInput.h"
#include "backends/runtime/commands/LineEditor.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace mica::rt {

namespace {
class PipeInput final : public ChatInput {
public:
  bool interactive() const override { return false; }

private:
  Result<Line> readLine(bool /*continued*/) override {
    for (;;) {
      size_t end = buffer.find('\n', searched);
      if (end != buffer.npos)
        return take(end, 1);
      searched = buffer.size();
      if (ended)
        return buffer.empty() ? Line{Line::EndOfInput} : take(buffer.size(), 0);
      if (Status more = fill(); !more)
        return more.error();
    }
  }
  Line take(size_t size, size_t mark) {
    Line line{Line::Whole, buffer.substr(0, size)};
    buffer.erase(0, size + mark);
    searched = 0;
    if (line.text.ends_with('\r'))
      line.text.pop_back();
    return line;
  }

  Status fill() {
    char piece[1 << 14];
    ssize_t got = ::read(STDIN_FILENO, piece, sizeof piece);
    if (got < 0 && errno == EINTR)
      return {};
    if (got < 0)
      return Error{std::string("cannot read the conversation from the standard input: ") +
                   std::strerror(errno)};
    ended = got == 0;
    buffer.append(piece, static_cast<size_t>(got));
    if (buffer.size() > maxTurnBytes)
      return Error{"a line of the conversation is larger than 256 MiB; use shorter ones"};
    return {};
  }

  std::string buffer;
  size_t searched = 0;
  bool ended = false;
};

} // namespace

std::unique_ptr<ChatInput> openChatInput(const std::optional<std::string> &history) {
  if (!isatty(STDIN_FILENO))
    return std::make_unique<PipeInput>();
  catchInterrupts();
  return openLineEditor(history);
}

} // namespace mica::rt
