// Messages on stderr.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_REPORT_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_REPORT_H

#include <string>
#include <string_view>

namespace mica::rt {

/// Sets the file named by errors: the program's path as typed by the user. Empty: none.
void setProgramName(std::string name);

/// `text` on one line without terminal control: control characters become \n, \t or \xNN.
std::string printable(std::string_view text);

/// `text` without terminal control except for newlines and tabs; well-formed UTF-8.
std::string sanitizeForTerminal(std::string_view text);

/// Writes `mica: error: PROGRAM: MESSAGE`. On a terminal, the kind of message is colored unless
/// NO_COLOR is set (no-color.org) or TERM is dumb.
void reportError(std::string_view message);
/// Writes `mica: note: MESSAGE`.
void reportNote(std::string_view message);
/// Writes `mica: warning: MESSAGE`.
void reportWarning(std::string_view message);
/// Writes `json`, the text of a value on one line, and a newline. Control characters that JSON
/// leaves as they are become \u00XX.
void reportJson(std::string_view json);
/// reportError, then ends the process with status 1 without running destructors: for errors in
/// generated code.
[[noreturn]] void reportFatal(std::string_view message);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_REPORT_H
