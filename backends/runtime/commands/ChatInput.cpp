#include "backends/runtime/commands/ChatInput.h"

#include <csignal>

namespace mica::rt {

namespace {
constexpr std::string_view fence = "\"\"\"";

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
    // A line with only a fence is not part of the turn.
    if (fenced && ends && text.empty() && turn.ends_with('\n'))
      turn.pop_back();
    turn += text;
    if (turn.size() > maxTurnBytes)
      return Error{"a turn of the conversation is larger than 256 MiB; use shorter ones"};
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
                       ? "the conversation ends within a \"\"\" block; close it with "
                         "\"\"\""
                       : "the conversation ends within a turn; leave out the backslash at the end "
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

void catchInterrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = 1; };
  sigaction(SIGINT, &action, nullptr);
}

} // namespace mica::rt
