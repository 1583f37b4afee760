// Completion requests in OpenAI's JSON format: parsing, validation and tokenization. Fields that
// would have no effect and invalid values are rejected.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_PARSEREQUEST_H
#define MICA_BACKENDS_RUNTIME_SERVE_PARSEREQUEST_H

#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/serve/CompletionRequest.h"

#include <stop_token>
#include <string>
#include <string_view>
#include <variant>

namespace mica::rt::serve {

/// Parses the body of a request. Errors: not a JSON object; an unknown or unsupported field; a
/// value of the wrong type or out of range; a prompt that does not fit in the context; a model that
/// is not served. If `stop` is requested, the result is an error without a meaning.
std::variant<CompletionRequest, ApiError> parseCompletionRequest(Endpoint endpoint,
                                                                 std::string_view body,
                                                                 const ServedModel &model,
                                                                 const std::stop_token &stop = {});

/// The JSON Schema of an endpoint's requests, generated from the same table of fields.
Json requestSchema(Endpoint endpoint, const ServedModel &model);

/// Parses `body` as an object and removes fields that are null. `stop`: as above.
std::variant<Json, ApiError> parseObject(std::string_view body, const std::stop_token &stop = {});

/// The error for a model that is not served.
ApiError unknownModel(const std::string &name, const ServedModel &model);

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_PARSEREQUEST_H
