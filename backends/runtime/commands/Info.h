// The command `info`.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/program/ProgramFile.h"

#include <functional>

namespace mica::rt {

/// Whether programs compiled for `target` with `features` run on this machine; see Device::check.
using CheckTarget =
    std::function<Status(const std::string &target, const std::vector<std::string> &features)>;

/// Describes the program and whether it runs on this machine, on which neither its CPU nor a
/// working model object is required.
Status infoCommand(const program::ProgramFile &file, const CheckTarget &check,
                   const InfoArguments &arguments);

/// The license notices of the software in a program.
std::string licenseNotices();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H
