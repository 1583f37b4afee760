// What the commands that generate texts say alike.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONREPORT_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONREPORT_H

#include "backends/runtime/engine/Request.h"
#include "backends/runtime/text/ProgramTokenizer.h"

namespace mica::rt {

/// The settings with what only a tokenizer knows of them: the tokens of DRY's sequence breakers.
/// `text` may be null. Errors: those of checkSettings, a stop string without a tokenizer.
Result<GenerationSettings> usableSettings(GenerationSettings settings, const Manifest &manifest,
                                          const ProgramTokenizer *text);

/// 0 where no time has passed.
double tokensPerSecond(int64_t tokens, double seconds);

/// How a sequence ended, in JSON.
const char *nameOf(Finish finish);

/// Says how many tokens were fed once more, where there were some (see Session).
void noteRecomputed(int64_t tokens, double seconds);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_GENERATIONREPORT_H
