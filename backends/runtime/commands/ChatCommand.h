// `PROGRAM chat`.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_CHATCOMMAND_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_CHATCOMMAND_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"

namespace mica::rt {

/// A conversation: with line editing on a terminal, else one turn per line of stdin. Answers go to
/// stdout, everything else to stderr. A turn from a pipe that is rejected is reported and the rest
/// are answered; the result is then an error without a message.
Status chatCommand(const Model &model, const ChatArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_CHATCOMMAND_H
