#include "backends/runtime/program/Format.h"
#include "backends/runtime/support/Hash.h"

namespace mica::program {

uint64_t hashOf(Header header) {
  header.hash = 0;
  return rt::hashBytes(&header, sizeof header);
}

uint64_t hashOf(Footer footer) {
  footer.hash = 0;
  return rt::hashBytes(&footer, sizeof footer);
}

} // namespace mica::program
