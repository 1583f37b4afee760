// The command `score`: logits for other tools, through pipes.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_SCORE_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_SCORE_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"

namespace mica::rt {

/// A line of stdin: `LENGTH[/TOTAL] FIRST ID ID ...`. Truncates the sequence to LENGTH positions,
/// appends the ids as part of a text of TOTAL positions, and answers with the logits of ids[FIRST]
/// and all following ids. TOTAL is the end of the ids by default; it matters to models whose rope
/// depends on the sequence length.
struct ScoreRequest {
  int64_t length = 0, first = 0, total = 0;
  Tokens ids;
};

/// Errors name the invalid word.
Result<ScoreRequest> parseScoreRequest(std::string_view line);

/// Answers requests until the end of stdin. Writes rows of float32 [vocabulary] to stdout as soon
/// as they are computed.
Status scoreCommand(const Model &model, const ScoreArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_SCORE_H
