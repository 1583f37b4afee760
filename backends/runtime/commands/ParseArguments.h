// The command line of a compiled program, parsed and checked.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_PARSEARGUMENTS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_PARSEARGUMENTS_H

#include "backends/runtime/commands/Arguments.h"

namespace mica::rt {

/// The result of parsing: a command, or an exit status if help, a version or an error line has been
/// written.
struct Parsed {
  std::optional<int> exit;
  Arguments arguments;
};

Parsed parseArguments(int argc, const char *const *argv);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_PARSEARGUMENTS_H
