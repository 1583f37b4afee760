// The command `info`.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/program/ProgramFile.h"

#include <functional>

namespace mica::rt {

/// Whether programs that were compiled for `target` with `features` run here, as Device::check has
/// it.
using CheckTarget =
    std::function<Status(const std::string &target, const std::vector<std::string> &features)>;

/// Says whether the program runs here. Needs neither the target's CPU nor a working model object.
Status infoCommand(const program::ProgramFile &file, const CheckTarget &check,
                   const InfoArguments &arguments);

/// The license notices of the software in a program.
std::string licenseNotices();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H
