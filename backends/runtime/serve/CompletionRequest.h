// Requests for completions, in OpenAI's JSON: parsed, checked, and turned into tokens. A field that
// would have no effect is refused, as is a value that it cannot have.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_COMPLETIONREQUEST_H
#define MICA_BACKENDS_RUNTIME_SERVE_COMPLETIONREQUEST_H

#include "backends/runtime/engine/Request.h"
#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/text/ChatTemplate.h"

#include <string_view>
#include <variant>
#include <vector>

namespace mica::rt::serve {

enum class Endpoint { ChatCompletions, Completions };

struct CompletionRequest {
  Endpoint endpoint = Endpoint::ChatCompletions;
  std::vector<Tokens> prompts; ///< One, or those of a list.
  GenerationSettings settings;
  int64_t numChoices = 1; ///< `n`: completions of each prompt.
  bool stream = false;
  bool includeUsage = false; ///< A last event with the usage.
  /// How many alternatives each token lists; absent: no log probabilities.
  std::optional<int64_t> topLogprobs;
  std::vector<std::string> tools; ///< Names of the functions that an answer may call.
  bool parallelCalls = true;      ///< An answer does not end with its first call.
  bool reasons = false;           ///< The prompt ends with the beginning of reasoning.
};

/// The program whose completions are requested.
struct ServedModel {
  std::string name; ///< What `model` may say.
  const Manifest &manifest;
  const ProgramTokenizer *text;     ///< Null: the program has no tokenizer.
  const ChatTemplate *chatTemplate; ///< Null: it has no chat template.
  AnswerFormat answers = {};        ///< Of the chat template.
};

/// Errors: no JSON object; a field that is unknown, not implemented, of another type or out of its
/// range; a prompt that does not fit into the context; a model that is not served.
std::variant<CompletionRequest, ApiError>
parseCompletionRequest(Endpoint endpoint, std::string_view body, const ServedModel &model);

/// JSON Schema of the bodies that an endpoint takes, from the same table of fields.
Json requestSchema(Endpoint endpoint, const ServedModel &model);

/// The object that `body` is, without fields that are null.
std::variant<Json, ApiError> parseObject(std::string_view body);

/// The error about a model of another name than the one that is served.
ApiError unknownModel(const std::string &name, const ServedModel &model);

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_COMPLETIONREQUEST_H
