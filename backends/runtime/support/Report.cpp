#include "backends/runtime/support/Report.h"
#include "backends/runtime/support/SignalCleanup.h"

#include <cstdio>
#include <cstdlib>
#include <unistd.h>

namespace mica::rt {

static std::string &programName() {
  static std::string name = "program";
  return name;
}

void setProgramName(std::string name) { programName() = std::move(name); }

/// Appends the byte at `at`, escaped if it is (part of) a control character, and advances `at`.
/// `escape`: what precedes the two digits.
static void appendSanitized(std::string &out, std::string_view text, size_t &at,
                            std::string_view escape = "\\x") {
  static constexpr char digits[] = "0123456789abcdef";
  auto byte = static_cast<unsigned char>(text[at]);
  // U+0080 to U+009F are C2 80 to C2 9F; some terminals obey them like ESC.
  bool second = byte == 0xc2 && at + 1 < text.size() &&
                (static_cast<unsigned char>(text[at + 1]) & 0xe0) == 0x80;
  if (second)
    byte = static_cast<unsigned char>(text[++at]);
  if (second || byte < 0x20 || byte == 0x7f)
    out.append(escape) += {digits[byte >> 4], digits[byte & 15]};
  else
    out += text[at];
  ++at;
}

std::string printable(std::string_view text) {
  std::string line;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n' || text[at] == '\t')
      line += text[at++] == '\n' ? "\\n" : "\\t";
    else
      appendSanitized(line, text, at);
  }
  return line;
}

std::string sanitizeForTerminal(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] == '\n' || text[at] == '\t')
      out += text[at++];
    else
      appendSanitized(out, text, at);
  }
  return out;
}

static void writeLine(const std::string &line) {
  // A single call, so that lines of several processes are not interleaved. A failure cannot be
  // reported.
  std::fflush(stdout);
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

/// Whether messages on stderr may be colored.
static bool hasColors() {
  const char *off = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  return !(off && *off) && terminal && std::string_view(terminal) != "dumb" &&
         isatty(STDERR_FILENO);
}

/// `color`: the parameters of SGR.
static void report(const char *kind, const char *color, std::string_view message) {
  bool colored = hasColors();
  std::string line = "mica: ";
  if (colored)
    line += std::string("\033[") + color + "m";
  line += std::string(kind) + ":";
  if (colored)
    line += "\033[0m";
  writeLine(line + " " + printable(message) + "\n");
}

void reportError(std::string_view message) {
  std::string place = programName().empty() ? "" : programName() + ": ";
  report("error", "1;31", place + std::string(message));
}

void reportNote(std::string_view message) { report("note", "1;36", message); }

void reportWarning(std::string_view message) { report("warning", "1;35", message); }

void reportJson(std::string_view json) {
  std::string line;
  for (size_t at = 0; at < json.size();)
    appendSanitized(line, json, at, "\\u00");
  writeLine(line + "\n");
}

void reportFatal(std::string_view message) {
  reportError(message);
  removeTemporaries();
  _exit(1);
}

} // namespace mica::rt
