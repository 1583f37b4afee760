#include "backends/runtime/support/Memory.h"
#include "backends/runtime/support/HugePages.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace mica::rt {

Result<Memory> Memory::reserve(uint64_t bytes, Pages pages, std::string_view hint) {
  // mmap refuses a length of 0; callers want a valid pointer even then.
  uint64_t length = bytes == 0 ? 1 : bytes;
  int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  bool large = pages == Pages::Large && length >= program::hugePage;
  void *address = large ? program::mapAtHugePage(length, protection, flags)
                        : mmap(nullptr, length, protection, flags, -1, /*offset=*/0);
  if (address == MAP_FAILED)
    return Error{"cannot reserve " + std::to_string(bytes) + " bytes of memory (" +
                 std::strerror(errno) + "); " + std::string(hint)};
  if (large)
    program::requestHugePages(address, length);
  return Memory(address, length);
}

Memory::Memory(Memory &&other) noexcept
    : address(std::exchange(other.address, nullptr)), length(std::exchange(other.length, 0)) {}

Memory &Memory::operator=(Memory &&other) noexcept {
  std::swap(address, other.address);
  std::swap(length, other.length);
  return *this;
}

Memory::~Memory() {
  if (address)
    munmap(address, length);
}

} // namespace mica::rt
