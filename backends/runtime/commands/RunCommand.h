// The program without a subcommand: text generation.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_RUNCOMMAND_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_RUNCOMMAND_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"

namespace mica::rt {

/// Writes text, token ids or JSON to stdout, everything else to stderr.
Status runCommand(const Model &model, const RunArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_RUNCOMMAND_H
