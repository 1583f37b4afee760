// Lists of token ids in options.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_TOKENLIST_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_TOKENLIST_H

#include "backends/runtime/engine/GenerationSettings.h"
#include "backends/runtime/support/Result.h"

#include <string>

namespace mica::rt {

/// "1,2,3" as tokens; spaces around numbers are allowed. Errors name the entry.
Result<Tokens> parseTokenList(const std::string &list);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_TOKENLIST_H
