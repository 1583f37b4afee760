// Parts of the API's description in OpenAPI's format that do not follow from the tables of routes
// and fields: the schemas of replies, and examples of requests.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_OPENAPI_H
#define MICA_BACKENDS_RUNTIME_SERVE_OPENAPI_H

#include "backends/runtime/serve/ApiError.h"
#include "backends/runtime/serve/CompletionRequest.h"

namespace mica::rt::serve {

/// The schemas of replies and of the events of streams by name.
Json replySchemas();
/// A reference to one of these.
Json replySchema(const char *name);

/// Bodies that the endpoint accepts: an object of OpenAPI's examples.
Json exampleRequests(Endpoint endpoint, const ServedModel &model);

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_OPENAPI_H
