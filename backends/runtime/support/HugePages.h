// Mappings that can be of huge pages, which save most of the TLB misses.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_HUGEPAGES_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_HUGEPAGES_H

#include <cstdint>
#include <sys/types.h>

namespace mica::rt {

inline constexpr uint64_t hugePage = uint64_t(2) << 20;

/// As mmap, at an address where a huge page begins. Of a file whose `offset` is a multiple of
/// hugePage too, the system maps in huge pages what it keeps in such: that depends on how it was
/// written or read, and on the file system (ext4 from Linux 6.16 on, XFS, Btrfs).
void *mapAtHugePage(uint64_t length, int protection, int flags, int file = -1, off_t offset = 0);

/// Asks for huge pages where there are none yet: of anonymous memory when it is touched, of a file
/// when it is read from the disk, which is then read by such pages. A system without them does
/// nothing.
void requestHugePages(void *address, uint64_t length);

/// Of the mapping that holds `address`, the bytes that were touched and are in huge pages; 0 where
/// the system does not say.
uint64_t bytesInHugePages(const void *address);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_HUGEPAGES_H
