#include "backends/cpu/runtime/Report.h"

#include <cstdio>
#include <unistd.h>

namespace mica::rt {

static std::string programName = "program";

void setProgramName(std::string name) { programName = std::move(name); }

std::string printable(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string line;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      line += "\\n";
    else if (c == '\t')
      line += "\\t";
    else if (byte < 0x20 || byte == 0x7f)
      line += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    else
      line += c;
  }
  return line;
}

static void writeLine(const std::string &line) {
  // One call, so that lines of several processes do not mix. Nothing can be done where stderr is
  // closed.
  std::fflush(stdout);
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void reportError(std::string_view message) {
  writeLine("mica: error: " + printable(programName) + ": " + printable(message) + "\n");
}

void reportNote(std::string_view message) { writeLine("mica: note: " + printable(message) + "\n"); }

void reportFatal(std::string_view message) {
  reportError(message);
  _exit(1);
}

} // namespace mica::rt
