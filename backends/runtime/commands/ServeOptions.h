// The options of the command serve.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_SERVEOPTIONS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_SERVEOPTIONS_H

#include "backends/runtime/serve/ServeCommand.h"

#include <CLI/CLI.hpp>

namespace mica::rt {

/// Adds the command `serve`, whose options are stored in `serve`.
CLI::App *addServe(CLI::App &app, ServeArguments &serve);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_SERVEOPTIONS_H
