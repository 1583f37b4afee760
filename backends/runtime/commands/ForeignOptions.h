// Options of llama.cpp.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_FOREIGNOPTIONS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_FOREIGNOPTIONS_H

#include "backends/runtime/support/CommandLine.h"

#include <vector>

namespace mica::rt {

/// Hints for options of llama.cpp that have another name in programs or are not supported.
const std::vector<ForeignOption> &foreignOptions();

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_FOREIGNOPTIONS_H
