#include "backends/runtime/commands/ChatInput.h"
#include "backends/runtime/commands/LineEditor.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <unistd.h>

namespace mica::rt {

namespace {
/// Longer turns exceed every context.
constexpr size_t maxTurnBytes = size_t(1) << 28;

constexpr std::string_view fence = "\"\"\"";

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
      return Error{"a line of the conversation is larger than 256 MiB, give shorter ones"};
    return {};
  }

  std::string buffer;
  size_t searched = 0;
  bool ended = false;
};

volatile std::sig_atomic_t interrupted = 0;
} // namespace

Result<std::optional<std::string>> ChatInput::readTurn(std::string text) {
  std::string turn;
  bool fenced = text.starts_with(fence);
  if (fenced)
    text.erase(0, fence.size());
  for (;;) {
    bool ends = fenced ? text.ends_with(fence) : !text.ends_with('\\');
    if (fenced && ends)
      text.resize(text.size() - fence.size());
    else if (!fenced && !ends)
      text.pop_back();
    // A fence alone on its line is no line of the turn.
    if (fenced && ends && text.empty() && turn.ends_with('\n'))
      turn.pop_back();
    turn += text;
    if (turn.size() > maxTurnBytes)
      return Error{"a turn of the conversation is larger than 256 MiB, give shorter ones"};
    if (ends)
      return std::optional(turn);
    if (!(fenced && turn.empty()))
      turn += '\n';
    Result<Line> line = readLine(/*continued=*/true);
    if (!line)
      return line.error();
    if (line->kind == Line::Abandoned)
      return std::optional<std::string>();
    if (line->kind == Line::EndOfInput)
      return Error{fenced
                       ? "the conversation ends within a turn that \"\"\" began, end it with "
                         "\"\"\""
                       : "the conversation ends within a turn, leave out the backslash at the end "
                         "of its last line"};
    text = std::move(line->text);
  }
}

Result<std::optional<std::string>> ChatInput::read() {
  for (;;) {
    Result<Line> line = readLine(/*continued=*/false);
    if (!line)
      return line.error();
    if (line->kind == Line::EndOfInput)
      return std::optional<std::string>();
    if (line->kind == Line::Abandoned)
      continue;
    Result<std::optional<std::string>> turn = readTurn(std::move(line->text));
    if (!turn)
      return turn;
    if (!*turn)
      continue;
    remember(**turn);
    return turn;
  }
}

bool takeInterrupt() {
  bool was = interrupted;
  interrupted = 0;
  return was;
}

std::unique_ptr<ChatInput> openChatInput(const std::optional<std::string> &history) {
  if (!isatty(STDIN_FILENO))
    return std::make_unique<PipeInput>();
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
  return openLineEditor(history);
}

} // namespace mica::rt
