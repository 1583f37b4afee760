// How many threads this process should use, and what stack they get.
#ifndef MICA_BACKENDS_RUNTIME_SUPPORT_THREADS_H
#define MICA_BACKENDS_RUNTIME_SUPPORT_THREADS_H

#include "backends/runtime/support/Result.h"

#include <cstdint>
#include <string>

namespace mica::rt {

/// min(physical cores in the affinity mask, whole processors of the cgroup's quota), at least 1. A
/// second hardware thread per core does not pay: one thread saturates a core's vector units and its
/// share of the bandwidth.
unsigned defaultThreads();

/// min(processors in the affinity mask, whole processors of the cgroup's quota), at least 1: how
/// many threads can run at once without being stopped for others of this process.
unsigned processorsAllowed();

/// The quota in whole processors (rounded down, at least 1) that a cgroup version 2 `cpu.max` line
/// grants; 0 without a limit. "150000 100000" is 1, "max 100000" is 0.
unsigned quotaOf(const std::string &cpuMax);

/// The smallest quota, as quotaOf, of this process' cgroup and the ones above it, by what is
/// mounted at `root`/proc and `root`/sys: version 2, version 1 or both; 0 without a limit.
unsigned cgroupQuota(const std::string &root);

/// min(`processors`, cgroupQuota where there is one), at least 1.
unsigned withinQuota(unsigned processors, const std::string &root);

/// Lets the stacks of this thread and of those that are started later take so many bytes. Refused
/// where the user's hard limit is lower.
Status ensureStackSize(uint64_t needed);

} // namespace mica::rt

#endif // MICA_BACKENDS_RUNTIME_SUPPORT_THREADS_H
