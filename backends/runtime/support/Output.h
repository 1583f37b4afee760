// Writes to stdout.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_OUTPUT_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_OUTPUT_H

#include "backends/runtime/support/Result.h"

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace mica::rt {

/// Writes all of `bytes` to `fd`, stdout or a copy of it, without buffering. Errors: a full disk, a
/// closed output.
Status writeTo(int fd, std::string_view bytes);
/// The same to stdout.
Status writeOut(std::string_view text);

/// JSON on one line; invalid UTF-8 becomes U+FFFD.
std::string toJsonText(const nlohmann::ordered_json &value);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_OUTPUT_H
