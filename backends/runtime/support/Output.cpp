#include "backends/runtime/support/Output.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mica::rt {

Status writeTo(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return Error{std::string("cannot write to the standard output: ") + std::strerror(errno) +
                   "; redirect it elsewhere"};
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status writeOut(std::string_view text) { return writeTo(STDOUT_FILENO, text); }

std::string toJsonText(const nlohmann::ordered_json &value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mica::rt
