// The number of threads of this process, and their stack size.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_THREADS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_THREADS_H

#include "backends/runtime/support/Result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

namespace mica::rt {

/// min(physical cores in the affinity mask, whole processors in the cgroup's quota), at least 1. A
/// second hardware thread per core does not pay off: one thread saturates a core's vector units and
/// its share of the memory bandwidth.
unsigned defaultThreads();

/// min(processors in the affinity mask, whole processors in the cgroup's quota), at least 1: the
/// number of threads that can run at once without being throttled.
unsigned processorsAllowed();

/// The numbers of the processors in the affinity mask of this thread, or of another process; empty
/// if they are unknown.
std::vector<size_t> affinity(pid_t process = 0);

/// The quota in whole processors (rounded down, at least 1) in a line of `cpu.max` (cgroup version
/// 2); 0 without a limit. "150000 100000" is 1, "max 100000" is 0.
unsigned quotaOf(const std::string &cpuMax);

/// The smallest quota of this process' cgroup and its ancestors, as in quotaOf. Reads `root`/proc
/// and `root`/sys: version 2, version 1 or both; 0 without a limit.
unsigned cgroupQuota(const std::string &root);

/// min(`processors`, cgroupQuota if there is one), at least 1.
unsigned withinQuota(unsigned processors, const std::string &root);

/// Ensures stacks of at least `needed` bytes for this thread and those created later. Error: the
/// hard limit is lower.
Status ensureStackSize(uint64_t needed);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_THREADS_H
