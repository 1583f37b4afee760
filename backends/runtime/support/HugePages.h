// Mappings that can use huge pages, which avoid most TLB misses.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_HUGEPAGES_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_HUGEPAGES_H

#include <cstdint>
#include <sys/types.h>

namespace mica::rt {

inline constexpr uint64_t hugePage = uint64_t(2) << 20;

/// Like mmap, but aligned to a huge page. If `offset` is a multiple of hugePage too, the kernel
/// maps those parts of the file in huge pages that are cached in huge pages. That depends on how it
/// was written or read, and on the file system (ext4 since Linux 6.16, XFS, Btrfs).
void *mapAtHugePage(uint64_t length, int protection, int flags, int file = -1, off_t offset = 0);

/// Requests huge pages for pages that are not in memory yet: anonymous memory that is touched
/// later, parts of a file that are read from disk later.
/// No effect on systems without huge pages.
void requestHugePages(void *address, uint64_t length);

/// The number of touched bytes that are in huge pages, in the mapping that contains `address`; 0 if
/// the system does not report it.
uint64_t bytesInHugePages(const void *address);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_HUGEPAGES_H
