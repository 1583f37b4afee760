#include "backends/cpu/runtime/Output.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace mica::rt {

Status writeOut(std::string_view text) {
  while (!text.empty()) {
    ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return Error{std::string("cannot write to the standard output: ") + std::strerror(errno) +
                   ", redirect it elsewhere"};
    text.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

std::string toJsonText(const nlohmann::ordered_json &value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace mica::rt
