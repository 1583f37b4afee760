// The memory that this process can still allocate.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_AVAILABLEMEMORY_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_AVAILABLEMEMORY_H

#include <cstdint>
#include <string>

namespace mica::rt {

/// Bytes of memory available on the machine, or in the control groups of this process if they allow
/// less. Includes memory with contents of files, such as weights, which allocations evict. Reads
/// `root`/proc and `root`/sys. 1 GiB if the system does not report its memory.
uint64_t availableMemory(const std::string &root);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_AVAILABLEMEMORY_H
