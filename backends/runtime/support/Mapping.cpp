#include "backends/runtime/support/Mapping.h"

#include <sys/mman.h>
#include <utility>

namespace mica::rt {

Mapping::Mapping(Mapping &&other) noexcept
    : address(std::exchange(other.address, nullptr)), length(std::exchange(other.length, 0)) {}

Mapping &Mapping::operator=(Mapping &&other) noexcept {
  std::swap(address, other.address);
  std::swap(length, other.length);
  return *this;
}

Mapping::~Mapping() {
  if (address)
    munmap(address, length);
}

} // namespace mica::rt
