// `PROGRAM chat`.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_CHATCOMMAND_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_CHATCOMMAND_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"

namespace mica::rt {

/// A conversation: with line editing on a terminal, else one line of stdin per turn. Answers go to
/// stdout, everything else to stderr. Of a pipe's turns one that is refused is reported, and the
/// rest are answered; at the end there is an error without a message then.
Status chatCommand(const Model &model, const ChatArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_CHATCOMMAND_H
