#include "backends/runtime/ranks/HostName.h"

#include <unistd.h>

namespace mica::rt {

std::string hostName() {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  return name;
}

} // namespace mica::rt
