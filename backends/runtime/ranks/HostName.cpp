#include "backends/runtime/ranks/HostName.h"

#include <unistd.h>

namespace mica::rt {

std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

std::string rankOnHost(int64_t rank, const std::string &host) {
  return "rank " + std::to_string(rank) + " on host " + host;
}

} // namespace mica::rt
