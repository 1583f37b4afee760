// The lines that a program writes to stderr.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_REPORT_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_REPORT_H

#include <string>
#include <string_view>

namespace mica::rt {

/// The file that errors name: the program's path as it was called. Empty: they name none.
void setProgramName(std::string name);

/// `text` on one line and without effect on a terminal: control characters become \n, \t or \xNN.
std::string printable(std::string_view text);

/// `text` without effect on a terminal but its line ends and tabs; well-formed UTF-8.
std::string sanitizeForTerminal(std::string_view text);

/// Writes `mica: error: PROGRAM: MESSAGE`. On a terminal the kind of a message has a color, unless
/// NO_COLOR is set (no-color.org) or the terminal is a dumb one.
void reportError(std::string_view message);
/// Writes `mica: note: MESSAGE`.
void reportNote(std::string_view message);
/// Writes `mica: warning: MESSAGE`.
void reportWarning(std::string_view message);
/// reportError, then ends the process with status 1 without running destructors: for errors inside
/// generated code.
[[noreturn]] void reportFatal(std::string_view message);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_REPORT_H
