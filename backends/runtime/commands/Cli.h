// The main function of programs: parses, loads, dispatches.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_CLI_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_CLI_H

#include "backends/runtime/abi/Device.h"

namespace mica::rt {

/// Runs the command in `argv`, with kernels on `device`. `program`: the path of the program file.
/// Returns the exit status: 0 success, 1 invalid input or environment, 2 invalid usage.
int runProgram(const Device &device, const char *program, int argc, const char *const *argv);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_CLI_H
