// Generating the texts of many requests, several at once: -f FILE --batch B.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_BATCHCOMMAND_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_BATCHCOMMAND_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"
#include "backends/runtime/text/ProgramTokenizer.h"

namespace mica::rt {

/// Each text is what the program makes of its prompt alone with the seed that the result states; a
/// request without a seed gets one that follows from --seed and its line. `manifest` is the
/// model's, or has another chat template; `text` may be null.
Status batchCommand(const Model &model, const Manifest &manifest, const ProgramTokenizer *text,
                    const RunArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_BATCHCOMMAND_H
