// Generating the texts of many requests, several at once: -f FILE --batch B.
#pragma once

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"
#include "backends/runtime/text/Text.h"

namespace mica::rt {

/// Each text is what the program makes of its prompt alone with the seed that the result states; a
/// request without a seed gets one that follows from --seed and its line. `manifest` is the
/// model's, or has another chat template; `text` may be null.
Status batchCommand(const Model &model, const Manifest &manifest, const Text *text,
                    const RunArguments &arguments);

} // namespace mica::rt
