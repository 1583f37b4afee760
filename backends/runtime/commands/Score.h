// The command `score`: logits for other tools, row by row through pipes.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_SCORE_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_SCORE_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/engine/Model.h"

namespace mica::rt {

/// A line of the standard input: `LENGTH[/TOTAL] FIRST ID ID ...`. The sequence goes back to its
/// first LENGTH positions, the ids are fed after them, as parts of a text of TOTAL positions, and
/// the logits of ids[FIRST] and of all that follow are answered. Without TOTAL the text ends with
/// the ids; it matters to models whose frequencies follow the length of a text.
struct ScoreRequest {
  int64_t length = 0, first = 0, total = 0;
  Tokens ids;
};

/// Errors name the word that is wrong.
Result<ScoreRequest> parseScoreRequest(std::string_view line);

/// Answers line by line until the standard input ends: rows of float32 [vocabulary] to the standard
/// output, as they are computed, so that no window of positions is ever held whole.
Status scoreCommand(const Model &model, const ScoreArguments &arguments);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_SCORE_H
