// Generating the texts of many requests, several at once: -f FILE --batch B.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_BATCHCOMMAND_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_BATCHCOMMAND_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"
#include "backends/runtime/text/ProgramTokenizer.h"

namespace mica::rt {

/// Each result is what the program generates for its prompt alone with the seed in the result; the
/// seed of a request without one is derived from --seed and its line. `manifest` is the model's,
/// possibly with another chat template; `text` may be null.
Status batchCommand(const Model &model, const Manifest &manifest, const ProgramTokenizer *text,
                    const RunArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_BATCHCOMMAND_H
