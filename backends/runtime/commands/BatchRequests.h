// The file of `-f FILE --batch B`: one request per line, as JSON.
#ifndef MICA_BACKENDS_RUNTIME_COMMANDS_BATCHREQUESTS_H
#define MICA_BACKENDS_RUNTIME_COMMANDS_BATCHREQUESTS_H

#include "backends/runtime/commands/Arguments.h"
#include "backends/runtime/text/ProgramTokenizer.h"

#include <memory>
#include <optional>
#include <string>

namespace mica::rt {

struct BatchRequest {
  int64_t line = 0; ///< in the file, from 1
  std::string id;   ///< as JSON; empty: none was given
  Tokens prompt;
  int64_t count = 1;           ///< number of samples
  GenerationSettings settings; ///< set by the request, and the chat template's end tokens
};

/// Reads requests one by one, so that only those in progress are in memory.
class BatchRequests {
public:
  /// Uses the arguments that name the file and choose the chat template.
  /// `tokenizer` may be null.
  static Result<std::unique_ptr<BatchRequests>>
  open(const ProgramTokenizer *tokenizer, const Manifest &manifest, const RunArguments &arguments);
  ~BatchRequests();

  /// The next request; null after the last one. Blank lines are skipped. Errors name the line:
  /// invalid JSON, an unknown key, or a prompt that the model cannot process.
  Result<std::shared_ptr<const BatchRequest>> next();

  struct Place {
    uint64_t bytes = 0;
    int64_t lines = 0;
  };
  /// The position of the next request.
  Place place() const;
  void goTo(Place place);

private:
  struct State;
  explicit BatchRequests(std::unique_ptr<State> state);
  std::unique_ptr<State> state;
};

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_COMMANDS_BATCHREQUESTS_H
