// What a program is: `info`.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H

#include "backends/runtime/abi/Device.h"
#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/program/ProgramFile.h"

namespace mica::rt {

/// Says whether the program runs on the device. Needs neither the target's CPU nor a working model
/// object.
Status infoCommand(const program::ProgramFile &file, const Device &device,
                   const InfoArguments &arguments);

/// The notices of the software linked into a program.
std::string licenseNotices();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_INFO_H
