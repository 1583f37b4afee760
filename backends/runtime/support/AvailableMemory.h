// How much memory this process can still get.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_AVAILABLEMEMORY_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_AVAILABLEMEMORY_H

#include <cstdint>
#include <string>

namespace mica::rt {

/// Bytes that the machine has available, or less where this process' control group or one above it
/// allows less, by what is mounted at `root`/proc and `root`/sys. A machine that does not say is
/// taken to have 1 GiB.
uint64_t availableMemory(const std::string &root);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_AVAILABLEMEMORY_H
