#include "backends/runtime/support/HugePages.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/mman.h>

namespace mica::rt {

static constexpr uint64_t page = 4096;

void *mapAtHugePage(uint64_t length, int protection, int flags, int file, off_t offset) {
  uint64_t reserved = length + hugePage, end = (length + page - 1) / page * page;
  void *room = mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                    /*offset=*/0);
  if (room == MAP_FAILED)
    return MAP_FAILED;
  char *begin = static_cast<char *>(room);
  uint64_t head = -reinterpret_cast<uint64_t>(begin) % hugePage;
  void *address = mmap(begin + head, length, protection, flags | MAP_FIXED, file, offset);
  if (address == MAP_FAILED) {
    int reason = errno;
    munmap(room, reserved);
    errno = reason;
    return MAP_FAILED;
  }
  if (head > 0)
    munmap(begin, head);
  if (head + end < reserved)
    munmap(begin + head + end, reserved - head - end);
  return address;
}

void requestHugePages(void *address, uint64_t length) { madvise(address, length, MADV_HUGEPAGE); }

uint64_t bytesInHugePages(const void *address) {
  auto sought = reinterpret_cast<uintptr_t>(address);
  uint64_t bytes = 0;
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  for (bool inside = false; std::getline(maps, line);) {
    // The description of a mapping starts with BEGIN-END in hexadecimal digits.
    char *dash = nullptr;
    uint64_t begin = std::strtoull(line.c_str(), &dash, 16);
    if (*dash == '-') {
      inside = begin <= sought && sought < std::strtoull(dash + 1, nullptr, 16);
      continue;
    }
    for (std::string_view key : {"AnonHugePages:", "FilePmdMapped:", "ShmemPmdMapped:"})
      if (inside && line.starts_with(key))
        bytes += std::strtoull(line.c_str() + key.size(), nullptr, 10) << 10;
  }
  return bytes;
}

} // namespace mica::rt
