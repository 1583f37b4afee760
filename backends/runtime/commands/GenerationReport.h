// Messages shared by the commands that generate text.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONREPORT_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONREPORT_H

#include "backends/runtime/engine/Request.h"
#include "backends/runtime/text/ProgramTokenizer.h"

namespace mica::rt {

/// The settings completed by what requires a tokenizer: the tokens of DRY's sequence breakers.
/// `text` may be null. Errors: those of checkSettings, a stop string without a tokenizer.
Result<GenerationSettings> usableSettings(GenerationSettings settings, const Manifest &manifest,
                                          const ProgramTokenizer *text);

/// 0 if `seconds` is 0.
double tokensPerSecond(int64_t tokens, double seconds);

/// The reason why a sequence ended, as named in JSON.
const char *nameOf(Finish finish);

/// Reports how many tokens were recomputed, if any (see Session).
void noteRecomputed(int64_t tokens, double seconds);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONREPORT_H
