#include "backends/runtime/support/Memory.h"
#include "backends/runtime/support/HugePages.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <sys/mman.h>

namespace mica::rt {

Result<Memory> Memory::reserve(uint64_t bytes, Pages pages, std::string_view hint) {
  // mmap rejects a length of 0, for which callers need a valid pointer too.
  uint64_t length = bytes == 0 ? 1 : bytes;
  int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  bool huge = pages == Pages::Huge && length >= hugePage;
  void *address = huge ? mapAtHugePage(length, protection, flags)
                       : mmap(nullptr, length, protection, flags, -1, /*offset=*/0);
  if (address == MAP_FAILED)
    return Error{"cannot reserve " + std::to_string(bytes) + " bytes of memory (" +
                 std::strerror(errno) + "); " + std::string(hint)};
  if (huge)
    requestHugePages(address, length);
  return Memory(address, length);
}

} // namespace mica::rt
