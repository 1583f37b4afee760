// The options and commands of a program.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_PROGRAMCOMMANDS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_PROGRAMCOMMANDS_H

#include "backends/runtime/commands/Arguments.h"

#include <CLI/CLI.hpp>

namespace mica::rt {

/// The text to continue as a positional argument.
inline constexpr const char *promptWord = "PROMPT";

/// Adds the options and commands of a program to
/// `app`, which has the program's name; parsing stores them in `arguments`.
void addProgramCommands(CLI::App &app, Arguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_PROGRAMCOMMANDS_H
