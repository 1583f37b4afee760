#include "backends/cpu/runtime/Memory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace mica::rt {

/// Moves the `length` bytes of a mapping that is longer by a large page to where one begins.
static char *align(char *address, uint64_t length) {
  constexpr uint64_t largePage = Memory::largePage;
  uint64_t head = -reinterpret_cast<uint64_t>(address) % largePage;
  constexpr uint64_t page = 4096;
  uint64_t end = (head + length + page - 1) / page * page, mapped = length + largePage;
  if (head > 0)
    munmap(address, head);
  if (end < mapped)
    munmap(address + end, mapped - end);
  return address + head;
}

Result<Memory> Memory::reserve(uint64_t bytes, Pages pages) {
  // mmap refuses a length of 0; callers want a valid pointer even then.
  uint64_t length = bytes == 0 ? 1 : bytes;
  bool large = pages == Pages::Large && length >= largePage;
  void *address = mmap(nullptr, large ? length + largePage : length, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return Error{"cannot reserve " + std::to_string(bytes) + " bytes of memory (" +
                 std::strerror(errno) +
                 "), use fewer sequences or compile with a smaller --max-seq"};
  if (large) {
    address = align(static_cast<char *>(address), length);
    // A system without them leaves the pages small.
    madvise(address, length / largePage * largePage, MADV_HUGEPAGE);
  }
  return Memory(address, length);
}

uint64_t Memory::inLargePages() const {
  auto own = reinterpret_cast<uintptr_t>(address);
  constexpr std::string_view key = "AnonHugePages:";
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  for (bool inside = false; std::getline(maps, line);) {
    // BEGIN-END in hexadecimal digits begins what is said of a mapping.
    char *dash = nullptr;
    uint64_t begin = std::strtoull(line.c_str(), &dash, 16);
    if (*dash == '-')
      inside = begin <= own && own < std::strtoull(dash + 1, nullptr, 16);
    else if (inside && line.starts_with(key))
      return std::strtoull(line.c_str() + key.size(), nullptr, 10) << 10;
  }
  return 0;
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
