// A completion request, and the model that it is for.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_COMPLETIONREQUEST_H
#define MICA_BACKENDS_RUNTIME_SERVE_COMPLETIONREQUEST_H

#include "backends/runtime/engine/Request.h"
#include "backends/runtime/text/ChatTemplate.h"

#include <optional>
#include <string>
#include <vector>

namespace mica::rt::serve {

enum class Endpoint { ChatCompletions, Completions };
constexpr const char *pathOf(Endpoint endpoint) {
  return endpoint == Endpoint::ChatCompletions ? "/v1/chat/completions" : "/v1/completions";
}

struct CompletionRequest {
  Endpoint endpoint = Endpoint::ChatCompletions;
  std::vector<Tokens> prompts; ///< one, or those of a list
  GenerationSettings settings;
  int64_t numChoices = 1; ///< `n`: completions of each prompt.
  bool stream = false;
  bool includeUsage = false; ///< send a final event with the usage
  /// The number of alternatives listed for each token; absent: no log probabilities.
  std::optional<int64_t> topLogprobs;
  std::vector<std::string> tools; ///< names of the functions that an answer may call
  bool parallelCalls = true;      ///< an answer may have several calls
  bool startsInReasoning = false; ///< the prompt ends with the beginning of reasoning
};

/// The program whose completions are requested.
struct ServedModel {
  std::string name; ///< accepted value of the field `model`
  const Manifest &manifest;
  const ProgramTokenizer *text;                 ///< null: the program has no tokenizer
  const ChatTemplate *chatTemplate;             ///< null: the program has no chat template
  AnswerFormat answers = {};                    ///< of the chat template
  std::optional<int64_t> lookup = {}, mtp = {}; ///< settings of every request
};

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_COMPLETIONREQUEST_H
