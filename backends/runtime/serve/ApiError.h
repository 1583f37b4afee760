// What the HTTP API answers instead of a result, in the shape of OpenAI's errors.
#ifndef MICA_BACKENDS_RUNTIME_SERVE_APIERROR_H
#define MICA_BACKENDS_RUNTIME_SERVE_APIERROR_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace mica::rt::serve {

using Json = nlohmann::ordered_json;

struct ApiError {
  unsigned status = 400; ///< Of HTTP.
  std::string message;
  std::optional<std::string> param = {}; ///< The field that is wrong.
  std::optional<std::string> code = {};

  /// {"error": {"message", "type", "param", "code"}}
  Json toJson() const;
};

/// A request that the server does not answer any more.
ApiError shuttingDown();

} // namespace mica::rt::serve

#endif // MICA_BACKENDS_RUNTIME_SERVE_APIERROR_H
