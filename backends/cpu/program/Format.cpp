#include "backends/cpu/program/Format.h"
#include "backends/cpu/program/Hash.h"

namespace mica::program {

uint64_t hashOf(Header header) {
  header.hash = 0;
  return hashBytes(&header, sizeof header);
}

uint64_t hashOf(Footer footer) {
  footer.hash = 0;
  return hashBytes(&footer, sizeof footer);
}

} // namespace mica::program
